package registry

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall.dev/rollcall/clusters"
)

// kubeconfig writes a kubeconfig whose contexts all lead to one server.
func kubeconfig(current, server string, contexts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\ncurrent-context: %q\nclusters:\n- name: %s\n  cluster: {server: 'https://%s'}\nusers:\n- name: %s\n  user: {token: CANARY}\ncontexts:\n", current, server, server, server)
	for _, name := range contexts {
		fmt.Fprintf(&b, "- name: %q\n  context: {cluster: %s, user: %s, namespace: %s}\n", name, server, server, server)
	}
	return b.String()
}

func TestContexts(t *testing.T) {
	dir := folder(t, map[string]string{
		"a":       kubeconfig("prod-eu", "a", "prod-eu", "prod-us", "dev"),
		"b":       kubeconfig("dev", "b", "dev", "arn:aws:eks:eu:1:cluster/prod"),
		"none":    "apiVersion: v1\nkind: Config\n",
		"dangles": kubeconfig("gone", "c", "here"),
		"unset":   kubeconfig("", "d", "one", "two"),
		"bad":     "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: {token: [CANARY]}\n",
		"text":    "token: CANARY: x\n",
	})
	at := func(names ...string) string {
		var all []string
		for _, n := range names {
			all = append(all, filepath.Join(dir, n))
		}
		return strings.Join(all, string(filepath.ListSeparator))
	}
	const remedy = "pass --kubeconfig FILE, set KUBECONFIG, or pass -f FILE with what kubectl get printed"
	cases := map[string]struct {
		reason string
		flag   string
		env    string
		o      ContextOptions
		want   []string // names of contexts
		err    string
	}{
		"Current":       {reason: "as kubectl", env: at("a"), want: []string{"prod-eu"}},
		"CurrentMerged": {reason: "the first file decides", env: at("b", "a"), want: []string{"dev"}},
		"Flag":          {reason: "it alone counts", flag: at("b"), env: at("a"), o: ContextOptions{All: true}, want: []string{"arn:aws:eks:eu:1:cluster/prod", "dev"}},
		"Named":         {reason: "by name", env: at("a"), o: ContextOptions{Context: "dev"}, want: []string{"dev"}},
		"Pattern":       {reason: "by pattern", env: at("a", "b"), o: ContextOptions{Pattern: "prod-*"}, want: []string{"prod-eu", "prod-us"}},
		"PatternSlash":  {reason: "an ARN has slashes", env: at("a", "b"), o: ContextOptions{Pattern: "arn:*"}, want: []string{"arn:aws:eks:eu:1:cluster/prod"}},
		"All":           {reason: "of both files, each name once", env: at("a", "b"), o: ContextOptions{All: true}, want: []string{"arn:aws:eks:eu:1:cluster/prod", "dev", "prod-eu", "prod-us"}},
		"MissingPassed": {reason: "kubectl passes over it", env: at("gone", "a"), want: []string{"prod-eu"}},

		"NoMatch":        {reason: "what there is", env: at("a"), o: ContextOptions{Pattern: "test-*"}, err: `choosing contexts of "DIR/a": no context fits "test-*": there are "dev", "prod-eu", "prod-us"`},
		"NoSuch":         {reason: "what there is", env: at("a"), o: ContextOptions{Context: "prod"}, err: `choosing contexts of "DIR/a": "prod" is not among its contexts: "dev", "prod-eu", "prod-us"`},
		"BadPattern":     {reason: "never all", env: at("a"), o: ContextOptions{Pattern: "[a"}, err: `choosing contexts of "DIR/a": pattern "[a": syntax error in pattern`},
		"Two":            {reason: "which would count?", env: at("a"), o: ContextOptions{Pattern: "a", All: true}, err: `choosing contexts of "DIR/a": at most one of a context, a pattern and all can be given`},
		"CurrentGone":    {reason: "what there is", env: at("dangles"), err: `choosing contexts of "DIR/dangles": the current context "gone" is not among its contexts: "here"`},
		"CurrentUnset":   {reason: "what there is", env: at("unset"), err: `choosing contexts of "DIR/unset": there is no current context: choose one of "one", "two"`},
		"NoContexts":     {reason: "an empty kubeconfig", env: at("none"), err: `choosing contexts of "DIR/none": no context is in it: pass another with --kubeconfig FILE, or pass -f FILE with what kubectl get printed`},
		"NoKubeconfig":   {reason: "the remedy is told", env: at("gone", "away"), err: `reading kubeconfigs: there is no "DIR/gone", "DIR/away": ` + remedy},
		"NoKubeconfigAt": {reason: "not passed over when asked for", flag: at("gone"), env: at("a"), err: `reading kubeconfigs: there is no "DIR/gone": ` + remedy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.env)
			got, err := Contexts(tc.flag, tc.o)
			if tc.err != "" {
				if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != tc.err {
					t.Fatalf("%s: got %v, want %s", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var names []string
			for _, cl := range got {
				names = append(names, cl.Name)
				if cl.Kubeconfig.Context != cl.Name {
					t.Errorf("%s: context %q of cluster %q", tc.reason, cl.Kubeconfig.Context, cl.Name)
				}
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	for _, file := range []string{"bad", "text"} {
		t.Run("Broken/"+file, func(t *testing.T) {
			_, err := Contexts(at(file), ContextOptions{})
			if err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), at(file)) {
				t.Errorf("want an error that names the file and keeps the secret, got %v", err)
			}
		})
	}
}

// Of a context that two files have the first file's counts, as with kubectl,
// and whoever connects gets the files in the order that makes it so.
func TestContextsMerge(t *testing.T) {
	dir := folder(t, map[string]string{"a": kubeconfig("", "a", "same"), "b": kubeconfig("", "b", "same")})
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, files := range [][]string{{a, b}, {b, a}} {
		t.Setenv("KUBECONFIG", strings.Join(files, string(filepath.ListSeparator)))
		policy := clusters.DefaultPolicy()
		got, err := Contexts("", ContextOptions{Context: "same", DefaultPolicy: policy})
		if err != nil {
			t.Fatal(err)
		}
		want := []clusters.Cluster{{Name: "same", Kubeconfig: &clusters.Kubeconfig{Paths: files, Context: "same"}, Policy: policy}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		_, config, err := readContexts("")
		if err != nil {
			t.Fatal(err)
		}
		if ns := config.Contexts["same"].Namespace; ns != filepath.Base(files[0]) {
			t.Errorf("with %q first the context of %q counts", filepath.Base(files[0]), ns)
		}
	}
}

// Hundreds of kubeconfigs are found in one go.
func TestContextsMany(t *testing.T) {
	files := map[string]string{}
	var paths []string
	for i := range 200 {
		files[fmt.Sprintf("k%03d", i)] = kubeconfig("", fmt.Sprintf("s%d", i), fmt.Sprintf("prod-%03d", i), fmt.Sprintf("dev-%03d", i))
	}
	dir := folder(t, files)
	for i := range 200 {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("k%03d", i)))
	}
	t.Setenv("KUBECONFIG", strings.Join(paths, string(filepath.ListSeparator)))
	got, err := Contexts("", ContextOptions{Pattern: "prod-*"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 200 || got[0].Name != "prod-000" || got[199].Name != "prod-199" {
		t.Errorf("got %d clusters", len(got))
	}
	_, err = Contexts("", ContextOptions{Context: "x"})
	if err == nil || !strings.HasSuffix(err.Error(), `"dev-019" and 380 more`) {
		t.Errorf("want a list that ends, got %v", err)
	}
}
