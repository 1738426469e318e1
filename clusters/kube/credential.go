package kube

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/rbac"
)

// credentialOf is what a configuration tells of its login without a request.
func credentialOf(c *rest.Config) clusters.Credential {
	from, until := life(c)
	return clusters.Credential{Issued: from, Expires: until, Unverified: c.Insecure}
}

// routeOf is how a configuration reaches its cluster, without what is secret.
func routeOf(c *rest.Config) Route {
	r := Route{Login: "none", Impersonate: c.Impersonate.UserName, TLSServerName: c.ServerName, Unverified: c.Insecure}
	switch {
	case c.ExecProvider != nil:
		r.Login = "exec plugin " + c.ExecProvider.Command
	case c.BearerTokenFile != "":
		r.Login = "token file"
	case c.BearerToken != "":
		r.Login = "token"
	case c.CertFile != "" || len(c.CertData) > 0:
		r.Login = "client certificate"
	case c.Username != "":
		r.Login = "basic"
	}
	if c.Proxy != nil {
		if req, err := http.NewRequest(http.MethodGet, c.Host, nil); err == nil {
			if u, err := c.Proxy(req); err == nil && u != nil {
				r.Proxy = u.Scheme + "://" + u.Host
			}
		}
	}
	return r
}

// life is from when until when the certificate or the token holds; of the two,
// the one that ends first. An exec plugin makes new ones, and basic logins have no
// end.
func life(c *rest.Config) (from, until time.Time) {
	for _, of := range []func() (from, until time.Time){
		func() (from, until time.Time) { return certificateLife(content(c.CertData, c.CertFile)) },
		func() (from, until time.Time) {
			return tokenLife(string(content([]byte(c.BearerToken), c.BearerTokenFile)))
		},
	} {
		if f, u := of(); !u.IsZero() && (until.IsZero() || u.Before(until)) {
			from, until = f, u
		}
	}
	return from, until
}

// content is the data, or what the file has; a file that cannot be read is told
// of where the credential is used.
func content(data []byte, file string) []byte {
	if len(data) > 0 || file == "" {
		return data
	}
	read, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return read
}

func certificateLife(data []byte) (from, until time.Time) {
	block, _ := pem.Decode(data)
	if block == nil {
		return from, until
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return from, until
	}
	return cert.NotBefore, cert.NotAfter
}

// tokenLife reads the claims iat and exp of a JSON Web Token; others tell no end.
func tokenLife(token string) (from, until time.Time) {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return from, until
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return from, until
	}
	var claims struct {
		Iat int64 `json:"iat"`
		Exp int64 `json:"exp"`
	}
	if json.Unmarshal(body, &claims) != nil || claims.Exp <= 0 {
		return from, until
	}
	if claims.Iat > 0 {
		from = time.Unix(claims.Iat, 0)
	}
	return from, time.Unix(claims.Exp, 0)
}

// noteClock compares a server's clock with ours, by the first answer.
func (s *session) noteClock(began time.Time, h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	now := time.Now()
	skew := date.Sub(began.Add(now.Sub(began) / 2)).Round(time.Second)
	if skew.Abs() <= 2*time.Second { // Date is cut to a second, and an answer takes its time
		skew = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.clockSeen {
		s.credential.Skew, s.clockSeen = skew, true
	}
}

// powers asks what the credential may change. A server that tells only a part,
// because it asks others too, is asked for each permission by itself.
func (s *session) powers(ctx context.Context) ([]rbacv1.PolicyRule, error) {
	ask := access{verb: "create", group: "authorization.k8s.io", resource: "selfsubjectrulesreviews"}
	review, err := post(ctx, s, ask, &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceSystem}})
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	for _, r := range review.Status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
	}
	if !review.Status.Incomplete {
		return rules, nil
	}
	for _, m := range rbac.Marks {
		p, err := s.may(ctx, access{verb: m.Verb, group: m.Group, resource: m.Resource})
		if err != nil {
			return nil, err
		}
		if p.Allowed {
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{m.Verb}, APIGroups: []string{m.Group}, Resources: []string{m.Resource}})
		}
	}
	return rules, nil
}

// held adds to what is known of the credential what it may change. Where the
// server does not tell, nothing is known of that.
func (s *session) held(ctx context.Context, b *blanks) error {
	rules, err := s.powers(ctx)
	if err != nil {
		return b.unless(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credential.Powers, s.credential.Because, s.credential.Administrator = rbac.Held(rules)
	return nil
}

// login is what is known of the credential so far.
func (s *session) login() clusters.Credential {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.credential
}
