// Package hub makes clusters of the Secrets of a hub cluster: rollcall's own,
// Argo CD's and Cluster API's, none of which is trusted. It does not know how
// Secrets are read or how a cluster is reached.
package hub

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"rollcall.dev/rollcall/clusters"
)

// What marks a Secret that registers a cluster.
const (
	// Label marks our own: with "true" the cluster is named as its Secret, else
	// as the label's value. On a Secret of another kind it names the cluster.
	Label = "rollcall.dev/cluster"

	argoType       = "argocd.argoproj.io/secret-type"
	clusterAPIName = "cluster.x-k8s.io/cluster-name"
	clusterAPIType = "cluster.x-k8s.io/secret"
)

// Selector finds the Secrets of one kind in an API server's own terms. No
// Secret is of two kinds.
type Selector struct {
	Kind   string
	Labels string
	Fields string
}

// Selectors are those of some kinds.
func Selectors(kinds []string) []Selector {
	all := []Selector{
		{clusters.RollcallSecrets, Label + "," + argoType + "!=cluster", "type!=" + clusterAPIType},
		{clusters.ArgoCDSecrets, argoType + "=cluster", "type!=" + clusterAPIType},
		{clusters.ClusterAPISecrets, clusterAPIName, "type=" + clusterAPIType},
	}
	return slices.DeleteFunc(all, func(s Selector) bool { return !slices.Contains(kinds, s.Kind) })
}

// Registration is what one Secret says of one cluster.
type Registration struct {
	Kind      string
	Namespace string
	Secret    string // its name
	Name      string // of the cluster
	Labels    map[string]string
	Server    string            // URL of the API server, empty where it cannot be told
	CA        []byte            // PEM
	Own       *clusters.Cluster // what its cluster.yaml says, nil without one
	Err       error             // why it cannot be used, but for who else claims its name

	access *access // nil where the credential is not taken
}

// Origin names the Secret for messages.
func (r Registration) Origin() string {
	return fmt.Sprintf("Secret %q", r.Namespace+"/"+r.Secret)
}

// Taken tells whether the credential was taken, so that it can be observed.
func (r Registration) Taken() bool { return r.access != nil }

// Set is all that a hub's Secrets registered at one time.
type Set struct {
	Registrations []Registration // by namespace and name
	Addresses     []string       // of the hub's own API server: host:port as named and as reached
}

// Sort puts registrations into their order.
func Sort(all []Registration) {
	slices.SortFunc(all, func(a, b Registration) int {
		return strings.Compare(a.Namespace+"/"+a.Secret+"/"+a.Kind, b.Namespace+"/"+b.Secret+"/"+b.Kind)
	})
}

// Read makes a registration of a Secret. One that is of the kind by its labels
// and yet registers nothing, such as Cluster API's certificates, is passed over.
// Of a kind whose credential is not taken nothing but name, labels, server and
// CA is kept.
func Read(h clusters.Hub, defaults clusters.Policy, kind string, s *corev1.Secret) (r Registration, registers bool) {
	r = Registration{Kind: kind, Namespace: s.Namespace, Secret: s.Name, Labels: labelsOf(s.Labels)}
	d := &document{origin: r.Origin()}
	var claimed string
	switch kind {
	case clusters.RollcallSecrets:
		claimed = s.Name
		r.own(s, defaults)
		r.access = d.kubeconfig("kubeconfig", s.Data["kubeconfig"])
	case clusters.ArgoCDSecrets:
		claimed = string(s.Data["name"])
		r.access = d.argoCD(s.Data)
	case clusters.ClusterAPISecrets:
		claimed = s.Labels[clusterAPIName]
		if s.Name != claimed+"-kubeconfig" {
			return r, false
		}
		r.access = d.kubeconfig("value", s.Data["value"])
	}
	r.name(claimed, s.Labels[Label])
	if r.access != nil {
		r.Server, r.CA = shownServer(r.access.server), r.access.ca
	}
	if !slices.Contains(h.Credentials, kind) {
		r.access = nil // nor is it said what is wrong with it
		return r, true
	}
	r.Err = errors.Join(r.Err, d.err(), d.allow(r.access, h.ExecCommands))
	return r, true
}

// name takes the name that the Secret claims for its cluster. Where that is no
// name the Secret's own stands for it in the error.
func (r *Registration) name(claimed, label string) {
	if label != "" && label != "true" {
		claimed = label
	}
	r.Name = claimed
	if details := validation.IsDNS1123Subdomain(claimed); len(details) > 0 {
		r.Name = r.Secret
		r.Err = errors.Join(r.Err, fmt.Errorf("%s: its cluster's name is none that can be used (%s): label the Secret %s=NAME", r.Origin(), details[0], Label))
	}
}

// own reads the Cluster's settings beside our own kubeconfig.
func (r *Registration) own(s *corev1.Secret, defaults clusters.Policy) {
	const key = "cluster.yaml"
	data, ok := s.Data[key]
	if !ok {
		text, annotated := s.Annotations["rollcall.dev/"+key]
		if !annotated {
			return
		}
		data = []byte(text)
	}
	cl, err := clusters.ParseSettings(r.Origin()+" "+key, data, defaults)
	if err != nil {
		r.Err = errors.Join(r.Err, err)
		return
	}
	r.Own = &cl
}

// labelsOf leaves out what marks the Secret and says nothing of the cluster.
func labelsOf(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		domain, _, _ := strings.Cut(k, "/")
		if domain == "rollcall.dev" || domain == "argocd.argoproj.io" || domain == "x-k8s.io" || strings.HasSuffix(domain, ".x-k8s.io") {
			continue
		}
		out[k] = v
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// kindNames are the kinds in words.
var kindNames = map[string]string{
	clusters.RollcallSecrets: "the", clusters.ArgoCDSecrets: "Argo CD's", clusters.ClusterAPISecrets: "Cluster API's",
}

// NotTaken is why a cluster cannot be observed that is known only by name.
func (r Registration) NotTaken() error {
	where := ""
	if host := HostPort(r.Server); host != "" {
		where = fmt.Sprintf(" (its server is %q)", host)
	}
	return fmt.Errorf("no credential is taken from %s %s%s: register one with \"rollcall cluster add %s\", or allow it with spec.clusters.hub.credentials: [%s]",
		kindNames[r.Kind], r.Origin(), where, r.Name, r.Kind)
}
