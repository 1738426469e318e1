package clusters

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Applies tells whether the exception is for a cluster.
func (e Exception) Applies(cluster string, labels map[string]string) bool {
	return e.Clusters.Matches(cluster, labels)
}

// OnNode tells whether the exception is for a node: one that names none is for
// all.
func (e Exception) OnNode(name string) bool {
	return len(e.Nodes) == 0 || slices.Contains(e.Nodes, name)
}

// Expired tells whether the exception is over: it ends as its last day begins.
func (e Exception) Expired(at time.Time) bool { return !at.Before(e.Until) }

const exampleExcuse = "RMA 4711; owner=sre; until=2026-12-31"

// ParseExcuse reads the annotation ExcuseAnnotation of a node: a reason, and
// owner=, until=, agent= and code= beside it, apart by semicolons; or the same
// as a flow mapping. Which nodes and clusters it is for is left open.
func ParseExcuse(text string) (Exception, error) {
	var w wireExcuse
	var wrong []string
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		d := newDocument("")
		d.read([]byte(text), &w)
		for _, f := range d.faults {
			wrong = append(wrong, f.text)
		}
	} else {
		wrong = w.split(text)
	}
	if len(wrong) == 0 {
		e, faults := w.exception()
		if len(faults) == 0 {
			return e, nil
		}
		wrong = faults
	}
	return Exception{}, errors.New(strings.Join(wrong, "; ") + ": write it like " + strconv.Quote(exampleExcuse))
}

// split reads the parts of an annotation that is no mapping.
func (w *wireExcuse) split(text string) (wrong []string) {
	fields := []struct {
		name string
		into *string
	}{{"owner", &w.Owner}, {"until", (*string)(&w.Until)}, {"agent", &w.Agent}, {"code", &w.Code}, {"reason", &w.Reason}}
	var names, reasons []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		key, value, assigned := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		at := slices.Index(names, key)
		switch near := Nearest(key, names); {
		case part == "":
		case assigned && at >= 0 && *fields[at].into != "":
			wrong = append(wrong, "there are two "+key+"=")
		case assigned && at >= 0:
			*fields[at].into = value
		case assigned && near != "":
			wrong = append(wrong, fmt.Sprintf("unknown %q, did you mean %s=?", key+"=", near))
		default:
			reasons = append(reasons, part)
		}
	}
	if w.Reason != "" {
		reasons = append([]string{w.Reason}, reasons...)
	}
	w.Reason = strings.Join(reasons, "; ")
	return wrong
}

func (w *wireExcuse) exception() (e Exception, wrong []string) {
	for _, needed := range []struct{ value, what string }{
		{w.Reason, "a reason"}, {w.Owner, "an owner"}, {string(w.Until), "the day on which it ends (until)"},
	} {
		if strings.TrimSpace(needed.value) == "" {
			wrong = append(wrong, needed.what)
		}
	}
	if len(wrong) > 0 {
		return e, []string{"it lacks " + strings.Join(wrong, ", ")}
	}
	e = Exception{Agent: w.Agent, Code: w.Code, Reason: strings.TrimSpace(w.Reason), Owner: strings.TrimSpace(w.Owner)}
	var ok bool
	if e.Until, ok = parseEnd(string(w.Until)); !ok {
		wrong = append(wrong, fmt.Sprintf("until %q is neither a day nor a time such as 2026-12-31T18:00:00Z", string(w.Until)))
	}
	if e.Code != "" && !code.MatchString(e.Code) {
		wrong = append(wrong, fmt.Sprintf("code %q is none such as NodeNotReady", e.Code))
	}
	return e, wrong
}

// parseEnd reads a day, which begins at midnight in UTC, or a time.
func parseEnd(text string) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
