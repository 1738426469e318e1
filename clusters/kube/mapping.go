package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	names "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// resource is where an API has the objects of a kind.
type resource struct {
	name       string // in the plural
	namespaced bool
}

// path is where the server has an object.
func (r resource) path(ref clusters.Reference) (string, error) {
	if r.namespaced && ref.Namespace == "" {
		return "", fmt.Errorf("%s has no namespace", ref)
	}
	for _, part := range []string{ref.Name, ref.Namespace} {
		if wrong := names.IsPathSegmentName(part); len(wrong) > 0 {
			return "", fmt.Errorf("%s: %q %s", ref.Kind, part, strings.Join(wrong, ", "))
		}
	}
	path := apiPath(ref.APIVersion)
	if r.namespaced {
		path += "/namespaces/" + ref.Namespace
	}
	if ref.Name == "" {
		return "", fmt.Errorf("a %s has no name", ref.Kind)
	}
	return path + "/" + r.name + "/" + ref.Name, nil
}

func apiPath(version string) string {
	if !strings.Contains(version, "/") {
		return "/api/" + version
	}
	return "/apis/" + version
}

// unservedError is a kind that the server does not have in this version.
type unservedError struct {
	ref   clusters.Reference
	group bool // the server does not have the whole group
}

func (e *unservedError) Error() string {
	return fmt.Sprintf("the server does not serve kind %s of %s: its CustomResourceDefinition is missing, or it serves other versions (kubectl api-versions)", e.ref.Kind, e.ref.APIVersion)
}

// discovered is what a server was asked of its own kinds, by group and version.
type discovered struct {
	mu    sync.Mutex
	kinds map[string]map[string]resource
}

// resource looks a kind up: of Kubernetes' own, in the table, else with one
// question for all kinds of its group and version.
func (s *session) resource(ctx context.Context, ref clusters.Reference) (resource, error) {
	if r, ok := builtIn[ref.Group()+"/"+ref.Kind]; ok {
		return r, nil
	}
	d := &s.discovered
	d.mu.Lock()
	defer d.mu.Unlock()
	kinds, ok := d.kinds[ref.APIVersion]
	if !ok {
		var err error
		if kinds, err = s.discover(ctx, ref.APIVersion); err != nil {
			return resource{}, err
		}
		if d.kinds == nil {
			d.kinds = map[string]map[string]resource{}
		}
		d.kinds[ref.APIVersion] = kinds
	}
	if r, ok := kinds[ref.Kind]; ok {
		return r, nil
	}
	return resource{}, &unservedError{ref, len(kinds) == 0}
}

// forget makes the next look-up of a group ask anew, for its kinds have changed.
func (s *session) forget(group string) {
	s.discovered.mu.Lock()
	defer s.discovered.mu.Unlock()
	for version := range s.discovered.kinds {
		if strings.HasPrefix(version, group+"/") {
			delete(s.discovered.kinds, version)
		}
	}
}

// discover is empty where the server does not have the version.
func (s *session) discover(ctx context.Context, version string) (map[string]resource, error) {
	for part := range strings.SplitSeq(version, "/") {
		if wrong := names.IsPathSegmentName(part); len(wrong) > 0 || part == "" || strings.Count(version, "/") > 1 {
			return nil, fmt.Errorf("apiVersion %q is none", version)
		}
	}
	q := request{stage: fmt.Sprintf("asking for the kinds of %q", version), method: http.MethodGet, path: apiPath(version)}
	a, err := s.send(ctx, q)
	if apierrors.IsNotFound(err) {
		return map[string]resource{}, nil
	}
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := decodeAs(q, a, "APIResourceList", &list); err != nil {
		return nil, err
	}
	kinds := map[string]resource{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			kinds[r.Kind] = resource{r.Name, r.Namespaced}
		}
	}
	return kinds, nil
}

// otherVersions tells whether a server has a group, though not in the version
// that it was asked for: what is not served may be there nevertheless.
func (s *session) otherVersions(ctx context.Context, group string) (bool, error) {
	_, err := s.send(ctx, request{stage: fmt.Sprintf("asking for the versions of %q", group), method: http.MethodGet, path: "/apis/" + group})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// isUnserved tells a path that the server does not have from an object that it
// does not have: only of the latter it gives the name.
func isUnserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d == nil || d.Name == ""
}

// notServed tells, before or after a request, that the server does not have a
// kind.
func notServed(err error) bool {
	_, ok := errors.AsType[*unservedError](err)
	return ok || isUnserved(err)
}

// builtIn are Kubernetes' own kinds, by group and kind. They are where they are
// in every version.
var builtIn = map[string]resource{
	"/ConfigMap":             {"configmaps", true},
	"/Endpoints":             {"endpoints", true},
	"/Event":                 {"events", true},
	"/LimitRange":            {"limitranges", true},
	"/Namespace":             {"namespaces", false},
	"/Node":                  {"nodes", false},
	"/PersistentVolume":      {"persistentvolumes", false},
	"/PersistentVolumeClaim": {"persistentvolumeclaims", true},
	"/Pod":                   {"pods", true},
	"/PodTemplate":           {"podtemplates", true},
	"/ReplicationController": {"replicationcontrollers", true},
	"/ResourceQuota":         {"resourcequotas", true},
	"/Secret":                {"secrets", true},
	"/Service":               {"services", true},
	"/ServiceAccount":        {"serviceaccounts", true},

	"admissionregistration.k8s.io/MutatingAdmissionPolicy":          {"mutatingadmissionpolicies", false},
	"admissionregistration.k8s.io/MutatingAdmissionPolicyBinding":   {"mutatingadmissionpolicybindings", false},
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":     {"mutatingwebhookconfigurations", false},
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        {"validatingadmissionpolicies", false},
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": {"validatingadmissionpolicybindings", false},
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   {"validatingwebhookconfigurations", false},
	"apiextensions.k8s.io/CustomResourceDefinition":                 {"customresourcedefinitions", false},
	"apiregistration.k8s.io/APIService":                             {"apiservices", false},
	"apps/ControllerRevision":                                       {"controllerrevisions", true},
	"apps/DaemonSet":                                                {"daemonsets", true},
	"apps/Deployment":                                               {"deployments", true},
	"apps/ReplicaSet":                                               {"replicasets", true},
	"apps/StatefulSet":                                              {"statefulsets", true},
	"autoscaling/HorizontalPodAutoscaler":                           {"horizontalpodautoscalers", true},
	"batch/CronJob":                                                 {"cronjobs", true},
	"batch/Job":                                                     {"jobs", true},
	"certificates.k8s.io/CertificateSigningRequest":                 {"certificatesigningrequests", false},
	"coordination.k8s.io/Lease":                                     {"leases", true},
	"discovery.k8s.io/EndpointSlice":                                {"endpointslices", true},
	"flowcontrol.apiserver.k8s.io/FlowSchema":                       {"flowschemas", false},
	"flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration":       {"prioritylevelconfigurations", false},
	"networking.k8s.io/Ingress":                                     {"ingresses", true},
	"networking.k8s.io/IngressClass":                                {"ingressclasses", false},
	"networking.k8s.io/NetworkPolicy":                               {"networkpolicies", true},
	"node.k8s.io/RuntimeClass":                                      {"runtimeclasses", false},
	"policy/PodDisruptionBudget":                                    {"poddisruptionbudgets", true},
	"rbac.authorization.k8s.io/ClusterRole":                         {"clusterroles", false},
	"rbac.authorization.k8s.io/ClusterRoleBinding":                  {"clusterrolebindings", false},
	"rbac.authorization.k8s.io/Role":                                {"roles", true},
	"rbac.authorization.k8s.io/RoleBinding":                         {"rolebindings", true},
	"resource.k8s.io/DeviceClass":                                   {"deviceclasses", false},
	"resource.k8s.io/ResourceClaim":                                 {"resourceclaims", true},
	"resource.k8s.io/ResourceClaimTemplate":                         {"resourceclaimtemplates", true},
	"scheduling.k8s.io/PriorityClass":                               {"priorityclasses", false},
	"storage.k8s.io/CSIDriver":                                      {"csidrivers", false},
	"storage.k8s.io/CSINode":                                        {"csinodes", false},
	"storage.k8s.io/CSIStorageCapacity":                             {"csistoragecapacities", true},
	"storage.k8s.io/StorageClass":                                   {"storageclasses", false},
	"storage.k8s.io/VolumeAttachment":                               {"volumeattachments", false},
	"storage.k8s.io/VolumeAttributesClass":                          {"volumeattributesclasses", false},
}
