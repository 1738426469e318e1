package clusters

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// powers are what a policy may allow, in the order of DESIGN.
var powers = []string{"roll", "apply", "prune", "manage"}

func (d *document) targets(at *field.Path, ws []wireTarget) []Target {
	var all []Target
	seen := map[string]bool{}
	for i, w := range ws {
		at := at.Index(i)
		t := Target{
			Name:     d.unique(at.Child("name"), w.Name, seen),
			Clusters: d.clusters(at.Child("clusters"), w.Clusters),
			Overlay:  d.folder(at.Child("overlay"), w.Overlay),
		}
		if w.Namespace != nil {
			t.Namespace = *w.Namespace
			d.invalid(at.Child("namespace"), t.Namespace, validation.IsDNS1123Label(t.Namespace))
		}
		all = append(all, t)
	}
	return all
}

func (d *document) components(at *field.Path, ws []wireComponent) []Component {
	var all []Component
	for i, w := range ws {
		at := at.Index(i)
		all = append(all, Component{
			Clusters: d.clusters(at.Child("clusters"), w.Clusters),
			Path:     d.folder(at.Child("path"), w.Path),
		})
	}
	return all
}

func (d *document) agents(at *field.Path, ws []wireAgent, grace time.Duration) []Agent {
	var all []Agent
	seen := map[string]bool{}
	for i, w := range ws {
		at := at.Index(i)
		a := Agent{
			Name:         d.unique(at.Child("name"), w.Name, seen),
			Clusters:     d.clusters(at.Child("clusters"), w.Clusters),
			Nodes:        d.selector(at.Child("nodes"), w.Nodes),
			Min:          d.min(at.Child("min"), w.Min),
			Severity:     d.oneOf(at.Child("severity"), w.Severity, severities...),
			Severities:   d.severities(at.Child("severities"), w.Severities),
			StartupGrace: d.duration(at.Child("startupGrace"), w.StartupGrace, grace),
		}
		a.Names, a.Match = d.daemonSets(at, &w)
		a.daemonSets, a.nodes = selectorOf(nil, a.Match), selectorOf(nil, a.Nodes)
		all = append(all, a)
	}
	return all
}

// daemonSets reads what an agent consists of: names, under match or beside it,
// or labels.
func (d *document) daemonSets(at *field.Path, w *wireAgent) ([]string, *metav1.LabelSelector) {
	match := w.Match
	if match == nil {
		match = &wireSelection{}
	}
	names, namesAt := match.Names, at.Child("match", "names")
	if names == nil {
		names, namesAt = w.Names, at.Child("names")
	}
	labelled := len(match.MatchLabels)+len(match.MatchExpressions) > 0
	switch {
	case match.Names != nil && w.Names != nil:
		d.add(field.Forbidden(at.Child("names"), "at most one of names and match.names"))
	case len(names) > 0 && labelled:
		d.add(field.Forbidden(at.Child("match"), "either names or labels"))
	case len(names) == 0 && !labelled:
		d.add(field.Required(at.Child("match"), "the labels or names of DaemonSets"))
	}
	for i, name := range names {
		ns, ds, ok := strings.Cut(name, "/")
		if !ok || len(validation.IsDNS1123Label(ns))+len(validation.IsDNS1123Subdomain(ds)) > 0 {
			d.add(field.Invalid(namesAt.Index(i), name, "must be namespace/name of a DaemonSet"))
		}
	}
	if !labelled {
		return names, nil
	}
	return names, d.selector(at.Child("match"), &match.LabelSelector)
}

// severities are those of a finding, the default of an agent's gap first.
var severities = []string{"error", "warning", "info"}

func (d *document) severities(at *field.Path, byCode map[string]string) map[string]string {
	for _, c := range slices.Sorted(maps.Keys(byCode)) {
		severity := byCode[c]
		d.code(at.Key(shown(c)), c)
		d.oneOf(at.Key(shown(c)), &severity, severities...)
	}
	return byCode
}

// exclude reads which DaemonSets are not judged: each rule by names or by
// labels.
func (d *document) exclude(at *field.Path, ws []wireSelection) []Exclude {
	var all []Exclude
	for i, w := range ws {
		at := at.Index(i)
		labelled := len(w.MatchLabels)+len(w.MatchExpressions) > 0
		switch {
		case len(w.Names) > 0 && labelled:
			d.add(field.Forbidden(at, "either names or labels"))
		case len(w.Names) == 0 && !labelled:
			d.add(field.Required(at, "the names or labels of DaemonSets"))
		}
		for k, name := range w.Names {
			if !validPattern(name) {
				d.add(field.Invalid(at.Child("names").Index(k), name, "must be namespace/name of DaemonSets, either of them may be a pattern such as kube-*"))
			}
		}
		e := Exclude{Names: w.Names}
		if labelled {
			e.Match = d.selector(at, &w.LabelSelector)
			e.labels = compile(e.Match)
		}
		all = append(all, e)
	}
	return all
}

// validPattern refuses what would match nothing.
func validPattern(pattern string) bool {
	ns, name, ok := strings.Cut(pattern, "/")
	for _, part := range []string{ns, name} {
		_, err := path.Match(part, "")
		ok = ok && err == nil && part != "" && !strings.Contains(part, "/")
		if !strings.ContainsAny(part, `*?[\`) {
			ok = ok && len(validation.IsDNS1123Subdomain(part)) == 0
		}
	}
	return ok
}

var code = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

func (d *document) code(at *field.Path, text string) {
	if !code.MatchString(text) {
		d.add(field.Invalid(at, text, "must be a code such as NodeNotReady"))
	}
}

func (d *document) exceptions(at *field.Path, ws []wireException, agents []wireAgent) []Exception {
	var all []Exception
	for i, w := range ws {
		at := at.Index(i)
		if w.Agent == "" && w.Code == "" {
			d.add(field.Required(at, "one of agent and code: what is accepted"))
		}
		if w.Code != "" {
			d.code(at.Child("code"), w.Code)
		}
		d.agent(at.Child("agent"), w.Agent, agents)
		all = append(all, Exception{
			Agent:    w.Agent,
			Code:     w.Code,
			Clusters: d.clusters(at.Child("clusters"), w.Clusters),
			Nodes:    d.words(at.Child("nodes", "names"), w.Nodes.Names),
			Reason:   d.word(at.Child("reason"), w.Reason),
			Owner:    d.word(at.Child("owner"), w.Owner),
			Until:    d.day(at.Child("until"), w.Until),
		})
	}
	return all
}

// agent checks that an exception's agent is declared. One with a slash is a
// DaemonSet whose annotation makes it an agent, which is not known here.
func (d *document) agent(at *field.Path, name string, agents []wireAgent) {
	var names []string
	for _, a := range agents {
		names = append(names, a.Name)
	}
	if name == "" || strings.Contains(name, "/") || slices.Contains(names, name) {
		return
	}
	err := field.NotFound(at, name)
	err.Detail = "no agent in spec.agents has this name"
	if near := Nearest(name, names); near != "" {
		err.Detail += ", did you mean " + strconv.Quote(near) + "?"
	}
	d.add(err)
}

// policy reads a policy over its defaults: key by key, lists as a whole.
func (d *document) policy(at *field.Path, w *wirePolicy, defaults Policy) Policy {
	p := defaults
	p.Observe = d.cron(at.Child("observe"), or(w.Observe, p.Observe), nil, "UTC")
	p.StartupGrace = d.duration(at.Child("startupGrace"), w.StartupGrace, p.StartupGrace)
	p.ProgressDeadline = d.duration(at.Child("progressDeadline"), w.ProgressDeadline, p.ProgressDeadline)
	p.StaleAfter = d.duration(at.Child("staleAfter"), w.StaleAfter, p.StaleAfter)
	p.MaxDeletes = d.amount(at.Child("maxDeletes"), w.MaxDeletes, p.MaxDeletes)
	if w.Force != nil {
		p.Force = d.oneOf(at.Child("force"), w.Force, "never", "fields")
	}
	if w.May != nil {
		p.May = w.May
		for i, power := range w.May {
			d.oneOf(at.Child("may").Index(i), &power, powers...)
		}
	}
	if w.Windows != nil {
		p.Windows = d.windows(at.Child("windows"), w.Windows)
	}
	return p
}

// clusters reads a selection that must be written, though it may be {}: a rule
// for all clusters is never made by leaving something out.
func (d *document) clusters(at *field.Path, w *wireSelection) Selection {
	if w == nil {
		d.add(field.Required(at, "write {} for all clusters"))
		return Selection{}
	}
	if w.Names != nil && len(w.Names) == 0 {
		d.add(field.Required(at.Child("names"), "at least one name; {} is all clusters"))
	}
	for i, name := range w.Names {
		d.name(at.Child("names").Index(i), name)
	}
	s := Selection{Names: w.Names}
	if len(w.MatchLabels)+len(w.MatchExpressions) > 0 {
		s.Selector = d.selector(at, &w.LabelSelector)
		s.compiled = compile(s.Selector)
	}
	return s
}

func (d *document) selector(at *field.Path, s *metav1.LabelSelector) *metav1.LabelSelector {
	faults := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
	for _, err := range faults {
		d.add(err)
	}
	return s
}
