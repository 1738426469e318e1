package clusters

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultPolicy is the policy of a fleet that declares none: report only.
func DefaultPolicy() Policy {
	return Policy{
		Observe:          "*/5 * * * *",
		StartupGrace:     5 * time.Minute,
		ProgressDeadline: 10 * time.Minute,
		StaleAfter:       15 * time.Minute,
		MaxDeletes:       "10%",
		Force:            "never",
	}
}

// ParseFleet returns the fleet that a rollcall.yaml declares, defaults filled
// in, or every fault of it at once, each with the file, line and path.
func ParseFleet(file string, data []byte) (Fleet, error) {
	d := newDocument(file)
	var w wireFleet
	d.read(data, &w)
	if d.envelope("Fleet", w.APIVersion, w.Kind) {
		f := d.fleet(&w)
		if len(d.faults) == 0 {
			return f, nil
		}
	}
	return Fleet{}, d.err()
}

// ParseCluster returns the cluster that a Cluster file declares. What its
// policy leaves out is taken from defaults, key by key. Beside an error it
// returns the cluster's name where that could be read, so that the error can be
// reported as this cluster's.
func ParseCluster(file string, data []byte, defaults Policy) (Cluster, error) {
	return parseCluster(file, data, defaults, false)
}

// parseCluster reads a Cluster file. With a hub the kubeconfig may be its.
func parseCluster(file string, data []byte, defaults Policy, hub bool) (Cluster, error) {
	d := newDocument(file)
	var w wireCluster
	d.read(data, &w)
	if !d.envelope("Cluster", w.APIVersion, w.Kind) {
		return Cluster{File: file}, d.err()
	}
	cl := d.cluster(&w, defaults, hub)
	cl.File = file
	if err := d.err(); err != nil {
		return Cluster{Name: cl.Name, File: file}, err
	}
	return cl, nil
}

// envelope checks what a file says that it is. A file of another kind has no
// other fault than that, and one that could not be read has been told of.
func (d *document) envelope(want, apiVersion, kind string) (goOn bool) {
	if len(d.lines) == 0 {
		return false
	}
	if kind != "" && kind != want {
		d.faults = nil
	}
	d.exactly(field.NewPath("apiVersion"), apiVersion, APIVersion)
	d.exactly(field.NewPath("kind"), kind, want)
	return kind == "" || kind == want
}

func (d *document) exactly(at *field.Path, got, want string) {
	switch got {
	case want:
	case "":
		d.add(field.Required(at, fmt.Sprintf("must be %q", want)))
	default:
		d.add(field.NotSupported(at, got, []string{want}))
	}
}

func (d *document) fleet(w *wireFleet) Fleet {
	spec := field.NewPath("spec")
	policy := d.policy(spec.Child("policy"), &w.Spec.Policy, DefaultPolicy())
	f := Fleet{
		Name:       d.name(field.NewPath("metadata", "name"), w.Metadata.Name),
		Source:     d.source(spec.Child("source"), w.Spec.Source),
		Directory:  w.Spec.Clusters.Directory,
		Hub:        d.hub(spec.Child("clusters", "hub"), w.Spec.Clusters.Hub),
		Targets:    d.targets(spec.Child("targets"), w.Spec.Targets),
		Components: d.components(spec.Child("components"), w.Spec.Components),
		Agents:     d.agents(spec.Child("agents"), w.Spec.Agents, policy.StartupGrace),
		Exceptions: d.exceptions(spec.Child("exceptions"), w.Spec.Exceptions, w.Spec.Agents),
		Exclude:    d.exclude(spec.Child("daemonSets", "exclude"), w.Spec.DaemonSets.Exclude),
		Ignore:     d.ignores(spec.Child("drift", "ignore"), w.Spec.Drift.Ignore),
		Taints: Taints{
			Lifecycle: d.taints(spec.Child("taints", "lifecycle"), w.Spec.Taints.Lifecycle),
			Startup:   d.taints(spec.Child("taints", "startup"), w.Spec.Taints.Startup),
			Leaving:   d.taints(spec.Child("taints", "leaving"), w.Spec.Taints.Leaving),
		},
		AppliedBy: d.words(spec.Child("appliedBy"), w.Spec.AppliedBy),
		Policy:    policy,
		Rollout:   d.rollout(spec.Child("rollout"), w.Spec.Rollout),
		Approvals: d.approvals(spec.Child("approvals"), w.Spec.Approvals),
	}
	if f.Directory == "" && f.Hub == nil {
		f.Directory = "clusters"
	}
	if w.Spec.Source == nil {
		d.needsSource(spec.Child("targets"), len(f.Targets))
		d.needsSource(spec.Child("components"), len(f.Components))
		if f.Rollout != nil {
			d.needsSource(spec.Child("rollout"), 1)
		}
	}
	return f
}

// needsSource refuses what would be rendered when there is nothing to render:
// without it a fleet that lost its source would be judged as if it had none.
func (d *document) needsSource(at *field.Path, n int) {
	if n > 0 {
		d.add(field.Forbidden(at, "there is no spec.source to render from"))
	}
}

func (d *document) cluster(w *wireCluster, defaults Policy, hub bool) Cluster {
	metadata, spec := field.NewPath("metadata"), field.NewPath("spec")
	cl := Cluster{
		Name:     d.name(metadata.Child("name"), w.Metadata.Name),
		Labels:   d.labels(metadata.Child("labels"), w.Metadata.Labels),
		Recorded: d.words(spec.Child("recorded"), w.Spec.Recorded),
		Identity: w.Spec.Identity,
		Policy:   d.policy(spec.Child("policy"), &w.Spec.Policy, defaults),
		Settings: d.settings(spec, &w.Spec.wireSettings),
	}
	d.location(spec, &cl, w.Spec.RecordedAuth)
	cl.Registered = d.registered(field.NewPath("status"), w.Status)
	reach := d.oneOf(spec.Child("reachability"), w.Spec.Reachability, "steady", "intermittent")
	cl.Intermittent = reach == "intermittent"
	if k := w.Spec.Kubeconfig; k != nil {
		at := spec.Child("kubeconfig")
		if k.Path == "" {
			d.add(field.Required(at.Child("path"), "a kubeconfig file"))
		}
		cl.Kubeconfig = &Kubeconfig{Paths: []string{k.Path}, Context: k.Context}
	}
	switch recorded := w.Spec.Recorded != nil; {
	case recorded && cl.Kubeconfig != nil:
		d.add(field.Forbidden(spec.Child("recorded"), "at most one of kubeconfig and recorded"))
	case recorded && len(w.Spec.Recorded) == 0:
		d.add(field.Required(spec.Child("recorded"), "a dump file or folder"))
	case !recorded && cl.Kubeconfig == nil && !hub:
		d.add(field.Required(spec, "one of kubeconfig and recorded"))
	}
	if cl.Kubeconfig != nil || w.Spec.Recorded != nil || !hub {
		d.onlyForSecrets(spec, cl.Settings)
	}
	return cl
}

// registered reads what `rollcall cluster add` wrote.
func (d *document) registered(at *field.Path, w wireStatus) Registered {
	r := Registered{Identity: w.Identity, Version: w.Version}
	if w.At == "" {
		return r
	}
	var err error
	if r.At, err = time.Parse(time.RFC3339, w.At); err != nil {
		d.add(field.Invalid(at.Child("registeredAt"), w.At, "must be a time such as 2026-12-01T09:00:00Z"))
	}
	return r
}

// location checks where a snapshot is got from. A network location is alone: what
// lies in several places is no snapshot.
func (d *document) location(spec *field.Path, cl *Cluster, auth *wireRecordedAuth) {
	remote := false
	for i, r := range cl.Recorded {
		if !strings.Contains(r, "://") {
			continue
		}
		remote = true
		at := spec.Child("recorded").Index(i)
		u, err := url.Parse(r)
		switch {
		case err != nil, u.Host == "", u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(u.Hostname())):
			d.add(field.Invalid(at, field.OmitValueType{}, "must be an https URL, or the path of a file or folder"))
		case u.User != nil:
			d.add(field.Invalid(at, field.OmitValueType{}, "must not hold a credential: name a file in recordedAuth.tokenFile"))
		case len(cl.Recorded) > 1:
			d.add(field.Forbidden(at, "a location must be alone"))
		}
	}
	if auth == nil {
		return
	}
	if !remote {
		d.add(field.Forbidden(spec.Child("recordedAuth"), "it is for an https location"))
	}
	cl.RecordedAuth = RecordedAuth(*auth)
}

// IsLoopback tells whether a host is this machine.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
