package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddIgnore(t *testing.T) {
	head := "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\n"
	pointer := Pointer{"spec", "template", "spec", "containers", "[name=c]", "image"}
	rule := Ignore{Group: "apps", Kind: "DaemonSet", Namespace: "obs", Name: "agent", Fields: []Pointer{pointer}, Reason: "hotfix: 3.9"}
	written := func(indent string) string {
		return indented("- group: apps\n  kind: DaemonSet\n  namespace: obs\n  name: agent\n  fields:\n    - /spec/template/spec/containers/[name=c]/image\n  reason: 'hotfix: 3.9'\n", indent)
	}
	for name, c := range map[string]struct{ spec, want, fault string }{
		"nothing yet": {
			spec: "spec: # ours\n  # where they are\n  clusters: {directory: c}\n",
			want: "spec: # ours\n  drift:\n    ignore:\n" + written("      ") + "  # where they are\n  clusters: {directory: c}\n",
		},
		"one before": {
			spec: "spec:\n    clusters: {directory: c}\n    drift:\n        ignore: # see the wiki\n        - {kind: Service, managers: [x]} # old\n",
			want: "spec:\n    clusters: {directory: c}\n    drift:\n        ignore: # see the wiki\n" + written("        ") + "        - {kind: Service, managers: [x]} # old\n",
		},
		"an indented one": {
			spec: "spec:\n  drift:\n    ignore:\n      - kind: Service\n        managers: [x]\n",
			want: "spec:\n  drift:\n    ignore:\n" + written("      ") + "      - kind: Service\n        managers: [x]\n",
		},
		"flow":       {spec: "spec: {clusters: {directory: c}}\n", fault: "spec is not written line by line; write below spec.drift.ignore yourself:\n- group: apps"},
		"empty list": {spec: "spec:\n  drift: {ignore: []}\n", fault: "is not written line by line"},
		"broken":     {spec: "spec:\n  drifts: {}\n", fault: "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AddIgnore("f.yaml", []byte(head+c.spec), []Ignore{rule})
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Fatalf("got %v, want %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(head+c.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
