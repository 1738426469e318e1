package coverage

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"rollcall.dev/rollcall/clusters"
)

// Fix is what would have to change, or where to look. Kubectl are the words
// that follow the program's name and how to reach the cluster; none where no
// command does it.
type Fix struct {
	Text    string
	Kubectl []string
}

// kubectl are the words of a command in the DaemonSet's namespace.
func (s *set) kubectl(words ...string) []string {
	return append([]string{"-n", s.ds.Namespace}, words...)
}

// explain adds to a check of the placement who set what it compared and, where
// it failed, what to do about it.
func (s *set) explain(c *Check, n *clusters.Node) {
	field := fieldOf[c.Name]
	template := ""
	if s.subject.Live != nil && s.wantP == s.liveP {
		template = strings.TrimPrefix(s.writtenBy(field), "; ")
	}
	switch c.Name {
	case "taint":
		c.By = taintedBy(n)
	default:
		c.By = template
	}
	if c.OK {
		return
	}
	switch c.Name {
	case "nodeName":
		c.Fixes = []Fix{s.inTemplate("remove spec.template.spec.nodeName")}
	case "nodeSelector":
		c.Fixes = s.selectorFixes(c, n)
	case "affinity":
		c.Fixes = s.affinityFixes(n)
	case "taint":
		c.Fixes = s.taintFixes(c, n)
	}
}

var fieldOf = map[string]string{"nodeName": "nodeName", "nodeSelector": "nodeSelector", "affinity": "affinity", "taint": "tolerations"}

func taintedBy(n *clusters.Node) string {
	w, ok := n.TaintWriter()
	if !ok || len(n.Taints) == 0 {
		return ""
	}
	return "the node's taints were last written by " + writerText(w)
}

// inTemplate is a change of the template. Where Git has the DaemonSet it is
// made there: by hand it would be drift.
func (s *set) inTemplate(text string) Fix {
	if s.subject.Desired != nil {
		return Fix{Text: text + ", in Git"}
	}
	return Fix{Text: text, Kubectl: s.kubectl("edit", "ds", s.ds.Name)}
}

// selectorFixes are for the pair that the check compared.
func (s *set) selectorFixes(c *Check, n *clusters.Node) []Fix {
	for _, sel := range s.wantP.selector {
		if sel.key == c.label {
			if w, ok := n.LabelWriter(sel.key); ok {
				c.By = strings.Trim(c.By+"; the label was last written by "+writerText(w), "; ")
			}
			return []Fix{
				{fmt.Sprintf("label the node %s=%s", sel.key, sel.value), labelNode(n, sel.key, sel.value)},
				s.inTemplate(fmt.Sprintf("or take %s=%s out of spec.template.spec.nodeSelector", sel.key, sel.value)),
			}
		}
	}
	return nil
}

// labelNode are the words that give a node a label, replacing one that it has.
func labelNode(n *clusters.Node, key, value string) []string {
	words := []string{"label", "node", n.Name, key + "=" + value}
	if have, has := n.Labels[key]; has && have != value {
		words = append(words, "--overwrite")
	}
	return words
}

// affinityFixes make the node match the term that it misses least.
func (s *set) affinityFixes(n *clusters.Node) []Fix {
	var best []Fix
	for _, t := range s.wantP.terms {
		if fixes, ok := termFixes(t, n); ok && (best == nil || len(fixes) < len(best)) {
			best = fixes
		}
	}
	return append(best, s.inTemplate("or change spec.template.spec.affinity.nodeAffinity"))
}

// termFixes are the labels that make a node match a term, if labels can.
func termFixes(t term, n *clusters.Node) ([]Fix, bool) {
	if t.dead() {
		return nil, false
	}
	for _, f := range t.names {
		if !f.matches(n.Name) {
			return nil, false
		}
	}
	var out []Fix
	for _, r := range t.labels {
		if r.Matches(labels.Set(n.Labels)) {
			continue
		}
		value, set, ok := satisfying(r)
		switch {
		case !ok:
			return nil, false
		case set:
			out = append(out, Fix{"label the node so that " + r.String(), labelNode(n, r.Key(), value)})
		default:
			out = append(out, Fix{"take the label off the node: " + r.String(), []string{"label", "node", n.Name, r.Key() + "-"}})
		}
	}
	return out, true
}

// satisfying is a value that meets a requirement; set is false where having no
// such label does.
func satisfying(r labels.Requirement) (value string, set, ok bool) {
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return r.ValuesUnsorted()[0], true, true
	case selection.Exists:
		return "true", true, true
	case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
		return "", false, true
	}
	bound, err := strconv.ParseInt(r.ValuesUnsorted()[0], 10, 64)
	if err != nil {
		return "", false, false
	}
	if r.Operator() == selection.GreaterThan {
		return strconv.FormatInt(bound+1, 10), true, true
	}
	return strconv.FormatInt(bound-1, 10), bound > 0, bound > 0 // a label begins with no minus
}

// taintFixes take the taint away, or tolerate it. One that comes and goes by
// itself is a sign, and goes with its reason.
func (s *set) taintFixes(c *Check, n *clusters.Node) []Fix {
	if !c.lasting {
		return []Fix{{"the taint goes by itself once its reason is mended: see the node's conditions", []string{"describe", "node", n.Name}}}
	}
	for _, t := range n.Taints {
		if taintText(t) == c.cause.Key {
			return []Fix{{"take the taint off the node", []string{"taint", "nodes", n.Name, taintText(t) + "-"}}, s.tolerate(t)}
		}
	}
	return nil
}

// tolerate adds a toleration for exactly this taint.
func (s *set) tolerate(t corev1.Taint) Fix {
	tol := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
	text := fmt.Sprintf("or add to spec.template.spec.tolerations: {key: %q, operator: Equal, value: %q, effect: %s}", t.Key, t.Value, t.Effect)
	if s.subject.Desired != nil {
		return Fix{Text: text + ", in Git"}
	}
	path, value := "/spec/template/spec/tolerations/-", any(tol)
	if len(s.ds.Spec.Template.Spec.Tolerations) == 0 {
		path, value = "/spec/template/spec/tolerations", []corev1.Toleration{tol}
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}})
	if err != nil { // of strings it never fails
		return Fix{Text: text}
	}
	return Fix{text, s.kubectl("patch", "ds", s.ds.Name, "--type=json", "-p", string(patch))}
}
