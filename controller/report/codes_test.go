package report_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/report"
)

// constants are the string constants of a file whose type has a name, or any.
func constants(t *testing.T, file, typ string) []string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); typ != "" && (!ok || id.Name != typ) {
			return true
		}
		for _, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

func table(t *testing.T) map[string]report.Code {
	t.Helper()
	out := map[string]report.Code{}
	for _, c := range report.Codes {
		if _, twice := out[c.Name]; twice {
			t.Errorf("%s is in the table twice", c.Name)
		}
		if c.Name == "" || c.Meaning == "" || c.Remedy == "" {
			t.Errorf("%q lacks a name, a meaning or a remedy", c.Name)
		}
		switch c.Severity {
		case report.Error, report.Warning, report.Info:
		default:
			t.Errorf("%s has the severity %q", c.Name, c.Severity)
		}
		out[c.Name] = c
	}
	return out
}

func TestCodesAreComplete(t *testing.T) {
	codes := table(t)
	sources := map[string]struct {
		file, typ string
		atLeast   int
	}{
		"Coverage":  {"../coverage/codes.go", "Code", 45},
		"Lints":     {"../coverage/lint.go", "Code", 8},
		"Admission": {"../coverage/admission.go", "Code", 1},
		"Render":    {"../../render/error.go", "", 11},
	}
	for name, tc := range sources {
		t.Run(name, func(t *testing.T) {
			all := constants(t, tc.file, tc.typ)
			if len(all) < tc.atLeast {
				t.Fatalf("%s has %d constants, it had %d: does this test read the right file?", tc.file, len(all), tc.atLeast)
			}
			for _, c := range all {
				if _, ok := codes[c]; !ok {
					t.Errorf("%s is given and not in the table", c)
				}
			}
		})
	}
	for _, c := range []string{"Modified", "TierMissing", "Unreachable", "Denied", "ObservationFailed", "DuplicateIdentity", "InvalidCluster", "ObservationStale", "InsecureTLS", "CredentialExpires", "CredentialCanWrite", "ClockSkew", "IdentityChanged", "TargetUnmatched", "AgentUnmatched", "RenderFailed", "RegistryStale", "SourceStale"} {
		if _, ok := codes[c]; !ok {
			t.Errorf("%s is given by controller and report and not in the table", c)
		}
	}
}

func TestSeverities(t *testing.T) {
	cases := map[string]struct {
		reason string
		code   string
		want   report.Severity
	}{
		"Error":   {"a node that is not heard from", "NodeUnreachable", report.Error},
		"Warning": {"a pod where none should be", "UntoleratedTaint", report.Warning},
		"Info":    {"what merely takes its time", "RollingUpdate", report.Info},
		"Kubelet": {"the kubelet's own words are errors", "OutOfcpu", report.Error},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := report.NewFinding("c", tc.code, "m", coverage.Cause{})
			if f.Severity != tc.want || f.Code != tc.code || f.Remedy == "" {
				t.Errorf("%s: got %s for %s, remedy %q", tc.reason, f.Severity, f.Code, f.Remedy)
			}
		})
	}
}

// Two contexts of a kubeconfig that lead to one cluster are told; only a fleet
// that registers one twice is in error.
func TestOneClusterTwice(t *testing.T) {
	cs := []report.Cluster{{Name: "admin", Identity: "uid"}, {Name: "reader", Identity: "uid"}, {Name: "other", Identity: "uid-2"}}
	for fleet, want := range map[string]report.Severity{"f": report.Error, "": report.Info} {
		found := report.New(report.Scope{Fleet: clusters.Fleet{Name: fleet}, NodesListed: "attention"}, cs, nil).Findings
		if len(found) != 2 || found[0].Cluster != "admin" || found[1].Cluster != "reader" || found[0].Severity != want || found[0].Code != "DuplicateIdentity" {
			t.Errorf("fleet %q: %+v", fleet, found)
		}
	}
}
