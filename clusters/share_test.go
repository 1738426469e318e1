package clusters

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Equal sets become one, different ones stay apart, and nothing else changes.
func TestSharedPod(t *testing.T) {
	set := func(app, hash string) map[string]string { return map[string]string{"app": app, "hash": hash} }
	pods := []Pod{
		{Name: "a", Labels: set("x", "1"), Owner: Owner{"DaemonSet", "x", "u"}},
		{Name: "b", Labels: set("x", "1"), Owner: Owner{"DaemonSet", "x", "u"}},
		{Name: "c", Labels: set("x", "2")},
		{Name: "d", Labels: map[string]string{"app": "x\x00hash"}},
		{Name: "e"},
	}
	var s Shared
	var got []Pod
	for _, p := range pods {
		got = append(got, s.Pod(p))
	}
	if diff := cmp.Diff(pods, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	same := func(a, b map[string]string) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	if !same(got[0].Labels, got[1].Labels) || same(got[0].Labels, got[2].Labels) {
		t.Error("equal labels are kept twice, or different ones once")
	}
}
