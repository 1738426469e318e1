package coverage

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Owner recognises who deploys a DaemonSet from the marks that deployers
// leave: labels, annotations, owner references and field managers.
// It returns an empty string when there is none.
func Owner(o metav1.ObjectMeta) string {
	if len(o.OwnerReferences) > 0 {
		return o.OwnerReferences[0].Kind + " " + o.OwnerReferences[0].Name
	}
	for _, m := range marks {
		v, ok := o.Labels[m.key]
		if !ok {
			v, ok = o.Annotations[m.key]
		}
		if !ok || !strings.Contains(v, m.has) {
			continue
		}
		if m.named {
			v, _, _ = strings.Cut(v, ":") // Argo CD's tracking-id goes on with the object
			return m.who + " " + v
		}
		return m.who
	}
	var found []string
	for _, f := range o.ManagedFields {
		if who, ok := knownManagers[f.Manager]; ok {
			found = append(found, who)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// marks are labels and annotations that a deployer puts on what it deploys;
// the value of some names the application or release. The first one counts:
// Wrangler's are K3s' own add-ons' and Fleet's.
var marks = []struct {
	key, has, who string
	named         bool
}{
	{"argocd.argoproj.io/tracking-id", "", "Argo CD", true}, {"argocd.argoproj.io/instance", "", "Argo CD", true},
	{"kustomize.toolkit.fluxcd.io/name", "", "Flux Kustomization", true}, {"helm.toolkit.fluxcd.io/name", "", "Flux HelmRelease", true},
	{"objectset.rio.cattle.io/owner-gvk", "k3s.cattle.io", "K3s", false}, {"objectset.rio.cattle.io/owner-gvk", "rke2.cattle.io", "RKE2", false},
	{"objectset.rio.cattle.io/owner-name", "", "Rancher Fleet", true}, {"objectset.rio.cattle.io/id", "", "K3s", false},
	{"components.gke.io/component-name", "", "GKE", false}, {"kubernetes.azure.com/managedby", "", "AKS", false}, {"eks.amazonaws.com/component", "", "EKS", false},
	{"meta.helm.sh/release-name", "", "Helm", true}, {"addonmanager.kubernetes.io/mode", "", "the add-on manager", false},
}

var knownManagers = map[string]string{
	"eks": "EKS", "argocd-controller": "Argo CD", "argocd-application-controller": "Argo CD", "kustomize-controller": "Flux",
	"helm": "Helm", "helm-controller": "Flux", "fleetagent": "Rancher Fleet", "kube-addon-manager": "the add-on manager",
	"kubeadm": "kubeadm", "kubectl": "kubectl", "kubectl-client-side-apply": "kubectl", "kubectl-create": "kubectl", "cluster-network-operator": "OpenShift",
}
