package coverage

import (
	"slices"

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
		switch {
		case ok && m.named:
			return m.who + " " + v
		case ok:
			return m.who
		}
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
// the value of some names the application or release.
var marks = []struct {
	key, who string
	named    bool
}{
	{"argocd.argoproj.io/tracking-id", "Argo CD", false}, {"argocd.argoproj.io/instance", "Argo CD", true},
	{"kustomize.toolkit.fluxcd.io/name", "Flux Kustomization", true}, {"helm.toolkit.fluxcd.io/name", "Flux HelmRelease", true},
	{"objectset.rio.cattle.io/owner-name", "Rancher Fleet", true}, {"meta.helm.sh/release-name", "Helm", true},
	{"addonmanager.kubernetes.io/mode", "the add-on manager", false}, {"kubernetes.azure.com/managedby", "AKS", false},
	{"eks.amazonaws.com/component", "EKS", false}, {"objectset.rio.cattle.io/id", "K3s", false},
}

var knownManagers = map[string]string{
	"eks": "EKS", "argocd-controller": "Argo CD", "argocd-application-controller": "Argo CD", "kustomize-controller": "Flux",
	"helm": "Helm", "helm-controller": "Flux", "fleetagent": "Rancher Fleet", "kube-addon-manager": "the add-on manager",
	"kubeadm": "kubeadm", "kubectl": "kubectl", "kubectl-client-side-apply": "kubectl", "kubectl-create": "kubectl", "cluster-network-operator": "OpenShift",
}
