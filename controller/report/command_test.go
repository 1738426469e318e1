package report

import (
	"os/exec"
	"testing"

	"rollcall.dev/rollcall/clusters"
)

func TestCommand(t *testing.T) {
	cases := map[string]struct {
		reason string
		reach  *clusters.Kubeconfig
		words  []string
		want   string
	}{
		"None":     {"no command", nil, nil, ""},
		"Recorded": {"a dump has no server", nil, []string{"get", "nodes"}, "kubectl get nodes"},
		"Context":  {"how the cluster is reached", &clusters.Kubeconfig{Paths: []string{"/a b/k"}, Context: "prod"}, []string{"get", "nodes"}, "kubectl --kubeconfig '/a b/k' --context prod get nodes"},
		"Merged":   {"several files are merged by $KUBECONFIG", &clusters.Kubeconfig{Paths: []string{"a", "b"}, Context: "prod"}, []string{"get", "nodes"}, "kubectl --context prod get nodes"},
		"Quoted":   {"what a shell would read is quoted", nil, []string{"label", "node", "n1", "a=$(id)", "b=it's"}, `kubectl label node n1 'a=$(id)' 'b=it'\''s'`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := command(tc.reach, tc.words); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// A shell reads back the very words.
func TestQuoteInShell(t *testing.T) {
	for _, word := range []string{"$(touch x)", "`id`", "a'b\"c", "new\nline", "\x1b[31m", "-n", "*", "~", "a;b", "", "ä", "!x", "#c"} {
		out, err := exec.Command("sh", "-c", "printf %s "+quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q became %q: %v", word, out, err)
		}
	}
}
