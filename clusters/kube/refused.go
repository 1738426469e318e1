package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/clusters"
)

// refusedBy tells why a change was not made: the server's reason, or a word of
// ours where it gave none, and what can be done.
func (s *session) refusedBy(ctx context.Context, ref clusters.Reference, err error) (reason, message string) {
	if unserved, ok := errors.AsType[*unservedError](err); ok {
		return "NotServed", unserved.Error()
	}
	step, ok := errors.AsType[*stepError](err)
	if !ok {
		return "Invalid", err.Error()
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		state, err := s.judge(ctx, step.access, step.err)
		return string(state), step.stage + ": " + err.Error()
	}
	st := status.Status()
	reason = string(st.Reason)
	if reason == "" || reason == string(metav1.StatusReasonUnknown) {
		reason = strings.ReplaceAll(http.StatusText(int(st.Code)), " ", "")
	}
	if owners := owned(st); len(owners) > 0 {
		return reason, conflictText(owners)
	}
	if isSecret(ref) {
		return reason, withoutValues(st)
	}
	if isUnserved(err) {
		return "NotServed", (&unservedError{ref: ref}).Error()
	}
	_, err = s.judge(ctx, step.access, step.err)
	return reason, err.Error()
}

// withoutValues is what a server says of a Secret, without its words, for they
// may quote what is in it.
func withoutValues(st metav1.Status) string {
	text := fmt.Sprintf("the server answers with status %d", st.Code)
	if st.Details == nil {
		return text
	}
	var fields []string
	for _, c := range st.Details.Causes {
		if c.Field != "" {
			fields = append(fields, c.Field)
		}
	}
	if len(fields) > 0 {
		text += " because of " + strings.Join(fields, ", ")
	}
	return text + "; what it says may quote the Secret and is not shown"
}

// owned are the fields that others own with another value, by their manager.
func owned(st metav1.Status) map[string][]string {
	if st.Details == nil {
		return nil
	}
	out := map[string][]string{}
	for _, c := range st.Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := c.Message
		if _, rest, found := strings.Cut(manager, `conflict with "`); found {
			manager, _, _ = strings.Cut(rest, `"`)
		}
		out[manager] = append(out[manager], strings.TrimPrefix(c.Field, "."))
	}
	return out
}

// mostFields of one manager are named in a conflict.
const mostFields = 10

func conflictText(owners map[string][]string) string {
	var parts []string
	for _, manager := range slices.Sorted(maps.Keys(owners)) {
		fields := owners[manager]
		slices.Sort(fields)
		fields = slices.Compact(fields)
		text := strings.Join(fields[:min(mostFields, len(fields))], ", ")
		if more := len(fields) - mostFields; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, fmt.Sprintf("%q owns %s", manager, text))
	}
	return fmt.Sprintf("others own fields with other values: %s; to take the fields, annotate the object in Git with %s: fields; to take the object over, with %s: \"true\"; else leave the fields out of Git",
		strings.Join(parts, "; "), clusters.ForceAnnotation, clusters.AdoptAnnotation)
}
