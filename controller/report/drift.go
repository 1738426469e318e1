package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/drift"
)

// spelled is how much of a list a message spells out.
const spelled = 3

// driftFindings are about objects that are not as Git says: who changed them,
// what is not there, what is there no more for a reason.
func driftFindings(cluster string, o drift.Outcome) []Finding {
	var out []Finding
	lists := map[string][]string{}
	for i := range o.Objects {
		x := &o.Objects[i]
		key := nameOf(x.Object)
		switch x.State {
		case drift.Modified:
			out = append(out, modified(cluster, x)...)
		case drift.Absent:
			if !isDaemonSet(x.Object) { // which coverage tells
				lists["absent "+x.Object.Kind] = append(lists["absent "+x.Object.Kind], key)
			}
		case drift.Extra:
			lists["extra"] = append(lists["extra"], key)
		case drift.Invalid:
			out = append(out, about(x.Object, NewFinding(cluster, "Refused", fmt.Sprintf("the API server would not take %s as Git has it: %s", key, x.Message), coverage.Cause{Kind: "object", Key: key})))
		}
		if len(x.Unknown) > 0 {
			out = append(out, about(x.Object, NewFinding(cluster, "UnknownField", fmt.Sprintf("%s: %s", key, some(x.Unknown)), coverage.Cause{Kind: "object", Key: key + " fields"})))
		}
	}
	for _, what := range sortedKeys(lists) {
		code, message := "Orphaned", "applied for this fleet before and no longer in Git: "+some(lists[what])
		if kind, absent := strings.CutPrefix(what, "absent "); absent {
			code, message = "ObjectAbsent", fmt.Sprintf("%s in Git and not in the cluster: %s", plural(len(lists[what]), kind), some(lists[what]))
		}
		out = append(out, NewFinding(cluster, code, message, coverage.Cause{Kind: "object", Key: what}))
	}
	out = append(out, ownRules(cluster, o.Unused)...)
	return append(out, unread(cluster, o.Unread)...)
}

func sortedKeys(m map[string][]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func isDaemonSet(r clusters.Reference) bool { return r.Kind == "DaemonSet" && r.Group() == "apps" }

// nameOf is namespace/name for a DaemonSet, which most is about, and has the kind
// before it for others.
func nameOf(r clusters.Reference) string {
	if isDaemonSet(r) {
		return r.Namespace + "/" + r.Name
	}
	return r.String()
}

func about(r clusters.Reference, f Finding) Finding {
	if isDaemonSet(r) {
		f.DaemonSets = []string{nameOf(r)}
	}
	return f
}

func some(all []string) string {
	if len(all) <= spelled {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:spelled], "; "), len(all)-spelled)
}

// modified is one finding for each manager that wrote what differs.
func modified(cluster string, o *drift.Object) []Finding {
	key := nameOf(o.Object)
	words := map[string][]string{}
	var managers []string
	for _, f := range o.Fields {
		if _, seen := words[f.Manager]; !seen {
			managers = append(managers, f.Manager)
		}
		words[f.Manager] = append(words[f.Manager], f.String()+byWhom(f))
	}
	var out []Finding
	for _, m := range managers {
		cause := coverage.Cause{Kind: "manager", Key: strings.TrimSpace(key + " " + m)}
		f := about(o.Object, NewFinding(cluster, "Modified", key+": "+some(words[m]), cause))
		if o.Immutable {
			f.Message += "; its selector cannot be changed: delete it with its pods, or recreate it with annotation " + clusters.ReplaceAnnotation + ": orphan"
		}
		if o.Confirmation == drift.Unconfirmed {
			f.Message += "; unconfirmed"
		}
		out = append(out, f)
	}
	return out
}

func byWhom(f drift.Field) string {
	switch {
	case f.Manager == "":
		return ""
	case f.NotAfter == nil:
		return ", last written by " + f.Manager
	}
	return ", last written by " + f.Manager + " not later than " + f.NotAfter.UTC().Format(time.RFC3339)
}

// unread tells what was not compared. That Secrets are not is how rollcall is
// made, and no finding.
func unread(cluster string, all []drift.Unread) []Finding {
	var words []string
	for _, u := range all {
		if u.Object.Kind != "Secret" {
			words = append(words, nameOf(u.Object)+" ("+u.Reason+")")
		}
	}
	if len(words) == 0 {
		return nil
	}
	return []Finding{NewFinding(cluster, "NotCompared", fmt.Sprintf("%s of Git could not be compared with live ones: %s", plural(len(words), "object"), some(words)), coverage.Cause{Kind: "object", Key: "unread"})}
}

// ownRules are rules of objects' annotations that ignore nothing.
func ownRules(cluster string, all []drift.Unused) []Finding {
	var out []Finding
	for _, u := range all {
		key := nameOf(u.Object)
		code, message := "IgnoreUnused", fmt.Sprintf("%q in annotation %s of %s ignores nothing", u.Rule, clusters.IgnoreAnnotation, key)
		if u.Fault != "" {
			code, message = "InvalidAnnotation", fmt.Sprintf("%q in annotation %s of %s: %s", u.Rule, clusters.IgnoreAnnotation, key, u.Fault)
		}
		out = append(out, about(u.Object, NewFinding(cluster, code, message, coverage.Cause{Kind: "object", Key: key + " " + clusters.IgnoreAnnotation + " " + u.Rule})))
	}
	return out
}

// ignored are the fleet's rules that ignored something, by their index there.
func (j Judged) ignored() map[int]bool {
	out := map[int]bool{}
	for i, used := range j.Drift.Used {
		if used {
			out[j.Ignore[i]] = true
		}
	}
	return out
}

// ignoreFindings are the fleet's rules that ignore nothing anywhere, as far as
// everything that they are for could be seen.
func ignoreFindings(s Scope, cs []Cluster) []Finding {
	if s.Narrowed || s.Revision.IsZero() {
		return nil
	}
	var out []Finding
	for i, g := range s.Fleet.Ignore {
		needed := slices.ContainsFunc(cs, func(c Cluster) bool {
			return c.ignored[i] || g.Clusters.Matches(c.Name, c.Labels) && (c.Failed() || c.Sync.State == SyncUnknown)
		})
		if !needed {
			where := fmt.Sprintf("spec.drift.ignore[%d]", i)
			out = append(out, NewFinding("", "IgnoreUnused", fmt.Sprintf("%s ignores nothing: %s", where, ignoreText(g)), coverage.Cause{Kind: "fleet", Key: "ignore " + ignoreText(g)}))
		}
	}
	return out
}

func ignoreText(g clusters.Ignore) string {
	var words []string
	for _, w := range []struct{ name, value string }{
		{"group", g.Group}, {"kind", g.Kind}, {"namespace", g.Namespace}, {"name", g.Name}, {"managers", strings.Join(g.Managers, ",")},
	} {
		if w.value != "" {
			words = append(words, w.name+" "+w.value)
		}
	}
	for _, p := range g.Fields {
		words = append(words, p.String())
	}
	return strings.Join(words, ", ")
}
