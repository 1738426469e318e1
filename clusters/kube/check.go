package kube

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"rollcall.dev/rollcall/clusters"
)

// Access is what a cluster lets us do, in its own words.
type Access struct {
	Server      string       `json:"server"`             // host and port
	Version     string       `json:"version,omitempty"`  // of the API server, empty where it may not be read
	Identity    string       `json:"identity,omitempty"` // UID of kube-system, empty where it may not be read
	User        string       `json:"user,omitempty"`     // as whom the server knows us, empty where it does not tell
	Groups      []string     `json:"groups,omitempty"`
	Permissions []Permission `json:"permissions,omitempty"`
}

// Permission is whether one verb on one resource is allowed, in one namespace
// or in all.
type Permission struct {
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"` // empty for all
	Name      string `json:"name,omitempty"`      // of the one object, empty for all
	Required  bool   `json:"required"`            // without it nothing can be reported
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason,omitempty"` // of the authorizer, often empty
	Remedy    string `json:"remedy,omitempty"` // a kubectl command that asks the same
}

// Complete tells whether all that is required is allowed.
func (a Access) Complete() bool {
	return !slices.ContainsFunc(a.Permissions, func(p Permission) bool { return p.Required && !p.Allowed })
}

// Check asks a cluster what it lets us read. Like Observe it keeps to the
// deadline and returns errors of type *clusters.ObserveError.
func (o *Observer) Check(ctx context.Context, c clusters.Cluster) (Access, error) {
	return within(ctx, o, c, func(ctx context.Context, s *session) (Access, error) { return s.check(ctx) })
}

func (s *session) check(ctx context.Context) (Access, error) {
	a := Access{Server: s.host}
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
	for _, need := range []struct {
		access
		required bool
	}{
		{listing("", "nodes", ""), true},
		{listing("apps", "daemonsets", ""), true},
		{listing("", "pods", ""), true},
		{listing("apps", "controllerrevisions", ""), false},
		{listing("", "events", ""), false},
		{kubeSystem(), false},
		{lease(""), false},
	} {
		p, err := s.may(ctx, need.access)
		if err != nil {
			return Access{}, err
		}
		p.Required = need.required
		a.Permissions = append(a.Permissions, p)
	}
	return a, nil
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
	review, err := post(ctx, s, ask, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: a.verb, Group: a.group, Resource: a.resource, Namespace: a.namespace, Name: a.name},
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
