package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/rbac"
)

// fieldManager is who we are to the API server.
const fieldManager = "rollcall"

// Granted is a login that was just made.
type Granted struct {
	Kubeconfig clusters.Hidden // with a token of the account, which ends at Expires
	Expires    time.Time       // as the server grants it, which may be sooner than asked
}

// Grant applies the objects of a grant to a cluster, with the login that c
// names, and makes a token for the account that they are about.
func (o *Observer) Grant(ctx context.Context, c clusters.Cluster, g rbac.Grant, life time.Duration) (Granted, error) {
	objects, err := g.Manifests()
	if err != nil {
		return Granted{}, err
	}
	return within(ctx, o, c, func(ctx context.Context, s *session) (Granted, error) {
		for _, object := range objects {
			if err := s.apply(ctx, object); err != nil {
				return Granted{}, err
			}
		}
		token, err := s.token(ctx, g.Account, life)
		if err != nil {
			return Granted{}, err
		}
		return s.kubeconfig(c, g.Account, token)
	})
}

// apply sends an object by server-side apply, in which we own only what is sent.
func (s *session) apply(ctx context.Context, object runtime.Object) error {
	path, err := rbac.Path(object)
	if err != nil {
		return err
	}
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("packing %s: %w", path, err)
	}
	stage := "applying " + path
	s.at(stage)
	err = s.groups[""].Patch(types.ApplyPatchType).AbsPath(path).Param("fieldManager", fieldManager).Body(body).Do(quiet(ctx)).Error()
	if err != nil {
		return &stepError{stage: stage, err: err}
	}
	return nil
}

func (s *session) token(ctx context.Context, account string, life time.Duration) (authenticationv1.TokenRequestStatus, error) {
	const stage = "asking for a token"
	s.at(stage)
	body, err := json.Marshal(&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(life.Seconds()))}})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, err
	}
	raw, err := s.groups[""].Post().AbsPath(fmt.Sprintf("/api/v1/namespaces/%s/serviceaccounts/%s/token", rbac.Namespace, account)).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).Body(body).Do(quiet(ctx)).Raw()
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, &stepError{stage: stage, err: err}
	}
	var answer authenticationv1.TokenRequest
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Status.Token == "" {
		return authenticationv1.TokenRequestStatus{}, &stepError{stage: stage, err: &answerError{errors.New("the answer has no token")}}
	}
	return answer.Status, nil
}

// kubeconfig is one of its own for the account: the way to the server is taken
// from the one that was used, the login is the token.
func (s *session) kubeconfig(c clusters.Cluster, account string, token authenticationv1.TokenRequestStatus) (Granted, error) {
	config, err := loadKubeconfig(c.Kubeconfig)
	if err != nil {
		return Granted{}, err
	}
	cluster := &api.Cluster{
		Server: config.Host, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
		CertificateAuthorityData: content(config.CAData, config.CAFile), ProxyURL: s.route.Proxy,
	}
	out := api.Config{
		Clusters:       map[string]*api.Cluster{c.Name: cluster},
		AuthInfos:      map[string]*api.AuthInfo{account: {Token: token.Token}},
		Contexts:       map[string]*api.Context{c.Name: {Cluster: c.Name, AuthInfo: account}},
		CurrentContext: c.Name,
	}
	data, err := clientcmd.Write(out)
	if err != nil {
		return Granted{}, errors.New("writing the kubeconfig failed") // the error may hold it
	}
	return Granted{clusters.Hide(data), token.ExpirationTimestamp.Time}, nil
}
