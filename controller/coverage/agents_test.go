package coverage

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodesOf(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"Label":   {"one label", "kubernetes.io/os=linux", "kubernetes.io/os in (linux)"},
		"Several": {"all forms that kubectl knows for labels", "a!=b,c in (d, e),!f,g,h==i,j notin (k)", "a notin (b),c in (d,e),!f,g,h in (i),j notin (k)"},
		"Empty":   {"would be all nodes", "", "it is empty"},
		"Blank":   {"likewise", " ", "it is empty"},
		"Greater": {"labels of objects are not compared", "a>1", `a: a selector of labels knows no "gt"`},
		"Wrong":   {"no selector", "a in", "unable to parse requirement: found '' expected: '('"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if s, err := nodesOf(tc.in); err != nil {
				got = err.Error()
			} else {
				got = metav1.FormatLabelSelector(s)
			}
			if got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
