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
		if v, ok := o.Labels[m.key]; ok {
			return m.who + " " + v
		}
		if v, ok := o.Annotations[m.key]; ok {
			return m.who + " " + v
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

var marks = []struct{ key, who string }{
	{"argocd.argoproj.io/tracking-id", "Argo CD"}, {"argocd.argoproj.io/instance", "Argo CD"},
	{"kustomize.toolkit.fluxcd.io/name", "Flux Kustomization"}, {"helm.toolkit.fluxcd.io/name", "Flux HelmRelease"},
	{"objectset.rio.cattle.io/owner-name", "Rancher Fleet"}, {"meta.helm.sh/release-name", "Helm"},
	{"addonmanager.kubernetes.io/mode", "the add-on manager"}, {"kubernetes.azure.com/managedby", "AKS"},
	{"eks.amazonaws.com/component", "EKS"}, {"objectset.rio.cattle.io/id", "K3s"},
}

var knownManagers = map[string]string{
	"eks": "EKS", "argocd-controller": "Argo CD", "argocd-application-controller": "Argo CD", "kustomize-controller": "Flux",
	"helm": "Helm", "helm-controller": "Flux", "fleetagent": "Rancher Fleet", "kube-addon-manager": "the add-on manager",
	"kubeadm": "kubeadm", "kubectl": "kubectl", "kubectl-client-side-apply": "kubectl", "kubectl-create": "kubectl", "cluster-network-operator": "OpenShift",
}
