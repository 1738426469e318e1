package render

import (
	"fmt"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// Resolution is what of the repository is a cluster's, and why.
type Resolution struct {
	Target     string
	Overlay    string
	Namespace  string // given to namespaced objects that have none
	Components []string
	Used       []Value // substituted in the paths
	Trace      []Rule
}

// Rule is one target or component of the fleet, and whether it applies to the
// cluster.
type Rule struct {
	Kind    string // target or component
	Name    string // of the target; components[n] for a component
	Path    string
	Result  string // Matched, NotUsed or NotMatched
	Because string // the label or name that decided
}

// The results of a Rule.
const (
	Matched    = "matched"
	NotUsed    = "not used"
	NotMatched = "not matched"
)

// Resolve chooses the first target that selects the cluster and every
// component that does. The trace is complete, also beside an error.
func Resolve(f clusters.Fleet, c clusters.Cluster) (Resolution, error) {
	chosen, trace := chooseTarget(f, c)
	res := Resolution{Trace: trace}
	var err error
	if chosen >= 0 {
		err = res.take(f, c, chosen)
	}
	for i := range f.Components {
		if e := res.component(f, c, i); err == nil {
			err = e
		}
	}
	if chosen < 0 {
		err = &Error{Code: ClusterUnmatched, Field: "spec.targets", Message: unmatched(f, c), Err: ErrUnmatched}
	}
	return res, err
}

func chooseTarget(f clusters.Fleet, c clusters.Cluster) (chosen int, trace []Rule) {
	chosen = -1
	for i, t := range f.Targets {
		rule := Rule{Kind: "target", Name: t.Name, Path: t.Overlay, Result: NotMatched, Because: t.Clusters.Why(c.Name, c.Labels)}
		switch {
		case !t.Clusters.Matches(c.Name, c.Labels):
		case chosen < 0:
			chosen, rule.Result = i, Matched
		default:
			rule.Result = NotUsed
			rule.Because += fmt.Sprintf("; target %q comes first", f.Targets[chosen].Name)
		}
		trace = append(trace, rule)
	}
	return chosen, trace
}

// take fills in what the chosen target says.
func (r *Resolution) take(f clusters.Fleet, c clusters.Cluster, i int) error {
	t := f.Targets[i]
	r.Target, r.Namespace = t.Name, t.Namespace
	overlay, used, err := resolvePath(t.Overlay, fmt.Sprintf("spec.targets[%d].overlay", i), fmt.Sprintf("target %q", t.Name), f, c)
	if err != nil {
		return err
	}
	r.Overlay, r.Trace[i].Path = overlay, overlay
	r.Used = append(r.Used, used...)
	return nil
}

func (r *Resolution) component(f clusters.Fleet, c clusters.Cluster, i int) error {
	k := f.Components[i]
	name := fmt.Sprintf("components[%d]", i)
	rule := Rule{Kind: "component", Name: name, Path: k.Path, Result: NotMatched, Because: k.Clusters.Why(c.Name, c.Labels)}
	defer func() { r.Trace = append(r.Trace, rule) }()
	if !k.Clusters.Matches(c.Name, c.Labels) {
		return nil
	}
	rule.Result = Matched
	p, used, err := resolvePath(k.Path, "spec."+name+".path", "component", f, c)
	if err != nil {
		return err
	}
	rule.Path = p
	r.Components = append(r.Components, p)
	r.Used = append(r.Used, used...)
	return nil
}

// resolvePath substitutes in a path. A value must not choose another folder
// than the one that its place in the path says.
func resolvePath(p, field, who string, f clusters.Fleet, c clusters.Cluster) (string, []Value, error) {
	text, used, err := Substitute("", p, c, f.Name)
	if err != nil {
		if e, ok := err.(*Error); ok {
			e.Field = field
		}
		return "", nil, err
	}
	for _, v := range used {
		if strings.Contains(v.Value, "/") || v.Value == ".." || v.Value == "." {
			return "", nil, &Error{Code: PathNotFound, Field: field, Message: fmt.Sprintf("%s: the value %q of ${%s} cannot be part of a path", who, v.Value, v.Name)}
		}
	}
	clean, fault := within(text)
	if fault != nil {
		fault.Field, fault.Message = field, who+": "+fault.Message
		return "", nil, fault
	}
	return clean, used, nil
}

func unmatched(f clusters.Fleet, c clusters.Cluster) string {
	return fmt.Sprintf("cluster %q is selected by none of %d targets: label it, or add a target with clusters: {}", c.Name, len(f.Targets))
}

// UnmatchedTargets names the targets that select none of the clusters.
func UnmatchedTargets(f clusters.Fleet, all []clusters.Cluster) []string {
	var names []string
	for _, t := range f.Targets {
		if !selectsAny(t.Clusters, all) {
			names = append(names, t.Name)
		}
	}
	return names
}

func selectsAny(s clusters.Selection, all []clusters.Cluster) bool {
	for _, c := range all {
		if s.Matches(c.Name, c.Labels) {
			return true
		}
	}
	return false
}
