package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/rbac"
)

// Access is what a cluster lets us do, in its own words.
type Access struct {
	Server      string       `json:"server"`             // host and port
	Version     string       `json:"version,omitempty"`  // of the API server, empty where it may not be read
	Identity    string       `json:"identity,omitempty"` // UID of kube-system, empty where it may not be read
	User        string       `json:"user,omitempty"`     // as whom the server knows us, empty where it does not tell
	Groups      []string     `json:"groups,omitempty"`
	Route       Route        `json:"route"`
	Expires     *time.Time   `json:"credentialExpires,omitempty"`
	Skew        string       `json:"clockSkew,omitempty"` // of the server's clock, where it is more than two seconds
	Powers      []string     `json:"powers,omitempty"`    // of a policy, that the credential has
	Everything  bool         `json:"administrator,omitempty"`
	Permissions []Permission `json:"permissions,omitempty"`
}

// Route is how a kubeconfig says that a cluster is reached. It holds no secret.
type Route struct {
	Login         string `json:"login"` // client certificate, token, token file, basic, exec plugin NAME, none
	Proxy         string `json:"proxy,omitempty"`
	Impersonate   string `json:"impersonate,omitempty"`
	TLSServerName string `json:"tlsServerName,omitempty"`
	Unverified    bool   `json:"insecureSkipTLSVerify,omitempty"`
}

// Permission is whether one verb on one resource is allowed, in one namespace
// or in all.
type Permission struct {
	For       string `json:"for"` // a tier, or a power of the policy
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"` // empty for all
	Name      string `json:"name,omitempty"`      // of the one object, empty for all
	Required  bool   `json:"required"`            // without it nothing can be reported, or the power not used
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason,omitempty"` // of the authorizer, often empty
	Remedy    string `json:"remedy,omitempty"` // a kubectl command that asks the same
}

// Complete tells whether all that is required is allowed.
func (a Access) Complete() bool {
	return !slices.ContainsFunc(a.Permissions, func(p Permission) bool { return p.Required && !p.Allowed })
}

// Check asks a cluster what it lets us read, and change where the cluster's
// policy has powers. Like Observe it keeps to the deadline and returns errors of
// type *clusters.ObserveError.
func (o *Observer) Check(ctx context.Context, c clusters.Cluster) (Access, error) {
	return within(ctx, o, c, func(ctx context.Context, s *session) (Access, error) { return s.check(ctx, c.Policy.May) })
}

func (s *session) check(ctx context.Context, may []string) (Access, error) {
	a := Access{Server: s.host, Route: s.route}
	var err error
	if a.Version, err = s.version(ctx); err != nil {
		return Access{}, err
	}
	if a.Identity, err = s.identity(ctx, &blanks{}); err != nil {
		return Access{}, err
	}
	if a.User, a.Groups, err = s.whoAmI(ctx); err != nil {
		return Access{}, err
	}
	if a.Permissions, err = s.permissions(ctx, may); err != nil {
		return Access{}, err
	}
	if err := s.held(ctx, &blanks{}); err != nil {
		return Access{}, err
	}
	l := s.login()
	a.Powers, a.Everything = l.Powers, l.Administrator
	if !l.Expires.IsZero() {
		a.Expires = new(l.Expires.UTC())
	}
	if l.Skew != 0 {
		a.Skew = l.Skew.String()
	}
	return a, nil
}

// permissions asks for each permission of the tiers and of the powers, in the
// order in which rbac lists them.
func (s *session) permissions(ctx context.Context, may []string) ([]Permission, error) {
	tier := rbac.Tiers[len(rbac.Tiers)-1]
	rules, err := rbac.Rules(tier, may)
	if err != nil {
		return nil, err
	}
	var asked []string
	wanted := map[string]Permission{}
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, resource := range r.Resources {
				p := Permission{For: r.For, Verb: verb, Group: r.APIGroups[0], Resource: resource, Namespace: r.Namespace, Required: r.Required && (r.For == rbac.Tiers[0] || slices.Contains(may, r.For)) && verb != "watch"}
				if len(r.ResourceNames) > 0 {
					p.Name = r.ResourceNames[0]
				}
				key := fmt.Sprint(len(asked))
				asked, wanted[key] = append(asked, key), p
			}
		}
	}
	return each(ctx, asked, func(ctx context.Context, key string) ([]Permission, error) {
		p := wanted[key]
		got, err := s.may(ctx, access{verb: p.Verb, group: p.Group, resource: p.Resource, namespace: p.Namespace, name: p.Name})
		got.For, got.Required = p.For, p.Required
		return []Permission{got}, err
	})
}

// whoAmI is unknown to servers before v1.28.
func (s *session) whoAmI(ctx context.Context) (user string, groups []string, err error) {
	a := access{verb: "create", group: "authentication.k8s.io", resource: "selfsubjectreviews"}
	review, err := post(ctx, s, a, &authenticationv1.SelfSubjectReview{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups, nil
}

func (s *session) may(ctx context.Context, a access) (Permission, error) {
	ask := access{verb: "create", group: "authorization.k8s.io", resource: "selfsubjectaccessreviews"}
	resource, sub, _ := strings.Cut(a.resource, "/")
	review, err := post(ctx, s, ask, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: a.verb, Group: a.group, Resource: resource, Subresource: sub, Namespace: a.namespace, Name: a.name},
	}})
	if err != nil {
		return Permission{}, err
	}
	remedy := "kubectl auth can-i " + a.canI()
	if a.name == "" && a.namespace == "" {
		remedy += " --all-namespaces"
	}
	return Permission{
		Verb: a.verb, Group: a.group, Resource: a.resource, Namespace: a.namespace, Name: a.name,
		Allowed: review.Status.Allowed, Reason: review.Status.Reason, Remedy: remedy + s.kubectl,
	}, nil
}

// post sends a review, which the server answers and does not keep.
func post[T runtime.Object](ctx context.Context, s *session, a access, review T) (T, error) {
	s.at("asking for " + a.resource)
	return decode[T](s, a, s.groups[a.group].Post().Resource(a.resource).Body(review).MaxRetries(maxRetries).Do(quiet(ctx)))
}
