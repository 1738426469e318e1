package clusters

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is written is read as the same cluster, whatever is in its texts.
func TestFormatCluster(t *testing.T) {
	want := Cluster{
		Name: "prod-eu", Labels: map[string]string{"env": "prod", "on": "yes", "n": "1"}, File: "f.yaml",
		Kubeconfig:   &Kubeconfig{Paths: []string{"/home/x y/config: 'a'"}, Context: "arn:aws:eks:eu-1:1:cluster/a"},
		Intermittent: true, Identity: "override",
		Policy:     Policy{Observe: "@every 1m", StartupGrace: time.Minute, ProgressDeadline: time.Minute, StaleAfter: time.Minute, MaxDeletes: "10%"},
		Registered: Registered{Identity: "uid", Version: "v1.37.2", At: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)},
	}
	data, err := FormatCluster(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseCluster("f.yaml", data, want.Policy)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, data)
	}
	if _, err := FormatCluster(Cluster{Name: "c", Recorded: []string{"d"}}); err == nil {
		t.Error("a recorded cluster was written")
	}
}

// Only the kubeconfig of a file is changed.
func TestWithKubeconfig(t *testing.T) {
	old := "# ours\napiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata:\n  name: a # the first\nspec:\n  kubeconfig: {path: admin.conf}\n  policy: {may: [roll]}\n"
	want := "# ours\napiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata:\n  name: a # the first\nspec:\n  kubeconfig: {path: a.kubeconfig, context: a}\n  policy: {may: [roll]}\n"
	got, err := WithKubeconfig("f", []byte(old), "a.kubeconfig", "a")
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, bad := range []string{"", "spec: {recorded: x}", "- a", "{"} {
		if _, err := WithKubeconfig("f", []byte(bad), "p", "c"); err == nil {
			t.Errorf("%q was changed", bad)
		}
	}
}
