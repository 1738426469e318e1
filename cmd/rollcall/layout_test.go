package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "rollcall.dev/rollcall/"

// rooms says which packages there are and what each may not import, directly:
// a path, or a prefix that ends in /. Pure ones may not reach the world.
var rooms = map[string]struct {
	pure bool
	not  []string
}{
	"cmd/rollcall":        {},
	"sync/source":         {pure: true, not: []string{"github.com/go-git/", module}},
	"sync/gitrepo":        {not: []string{module + "clusters", module + "clusters/", module + "render", module + "render/", module + "controller", module + "controller/"}},
	"sync/schedule":       {pure: true, not: []string{module}},
	"clusters":            {pure: true, not: []string{"k8s.io/client-go/"}},
	"clusters/hub":        {pure: true, not: []string{"k8s.io/client-go/", module + "clusters/", module + "render", module + "render/", module + "controller", module + "controller/"}},
	"clusters/registry":   {not: []string{module + "render", module + "render/", module + "controller", module + "controller/"}},
	"clusters/kube":       {not: []string{module + "sync/source", module + "render", module + "render/", module + "controller", module + "controller/"}},
	"clusters/rbac":       {pure: true, not: []string{"k8s.io/client-go/", module}},
	"clusters/recorded":   {not: []string{"k8s.io/client-go/", module + "render", module + "render/", module + "controller", module + "controller/"}},
	"clusters/kubetest":   {},
	"render":              {pure: true, not: []string{"k8s.io/client-go/", "sigs.k8s.io/kustomize/"}},
	"render/validate":     {pure: true, not: []string{"k8s.io/client-go/", "sigs.k8s.io/kustomize/", module + "controller", module + "controller/"}},
	"render/check":        {pure: true, not: []string{module, "k8s.io/"}},
	"render/build":        {not: []string{module + "clusters/", module + "controller", module + "controller/"}},
	"controller/coverage": {pure: true, not: []string{"k8s.io/client-go/", module + "render"}},
	"controller/drift":    {pure: true, not: []string{"k8s.io/client-go/", module + "clusters/"}},
	"controller/gate":     {pure: true, not: []string{"k8s.io/client-go/", module + "clusters/", module + "render", module + "render/"}},
	"controller/plan":     {pure: true, not: []string{"k8s.io/client-go/", module + "clusters/"}},
	"controller/report":   {pure: true, not: []string{"k8s.io/client-go/", module + "clusters/"}},
	"controller":          {not: []string{"k8s.io/client-go/", module + "clusters/", module + "render/", module + "sync/gitrepo"}},
}

// worldly are what a pure package does without.
var worldly = []string{"context", "log", "log/", "os", "os/", "net", "net/http", "sync", "sync/"}

// tooBig are generated clients for everything: four fifths of a binary.
var tooBig = []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/kubernetes/", "k8s.io/client-go/informers", "k8s.io/client-go/informers/"}

type listedPackage struct {
	ImportPath, Dir, Doc string
	GoFiles, Imports     []string
}

func packages(t *testing.T) []listedPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,GoFiles,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listedPackage
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listedPackage
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

func TestLayoutRooms(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		room, ok := rooms[name]
		if !ok {
			t.Errorf("package %s is no room of the design: add it to the table with what it must not know", name)
			continue
		}
		if p.Doc == "" {
			t.Errorf("package %s has no package doc", name)
		}
		for _, i := range p.Imports {
			if matches(i, room.not) || matches(i, tooBig) || room.pure && matches(i, worldly) {
				t.Errorf("package %s must not import %s", name, i)
			}
		}
		if name != "clusters/kubetest" {
			sizes(t, p, room.pure)
		}
	}
}

// sizes holds the budgets of a function and a file, and keeps the clock,
// goroutines and package state out of pure packages.
func sizes(t *testing.T, p listedPackage, pure bool) {
	for _, f := range p.GoFiles {
		file := filepath.Join(p.Dir, f)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(data, []byte("\n")); n > 400 {
			t.Errorf("%s has %d lines, the limit is 400: is it one thing?", file, n)
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if lines := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1; lines > 60 {
					t.Errorf("%s: %s has %d lines, the limit is 60", set.Position(n.Pos()), n.Name.Name, lines)
				}
				if n.Name.Name == "init" {
					t.Errorf("%s: no init", set.Position(n.Pos()))
				}
			case *ast.GoStmt:
				if pure {
					t.Errorf("%s: a pure package starts no goroutine", set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && pure && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep"}, n.Sel.Name) {
					t.Errorf("%s: a pure package has no clock", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// The line is read first: it stays short, and the README quotes it as it is.
func TestLayoutReconcile(t *testing.T) {
	const file = "../../controller/reconcile.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Reconcile" {
			continue
		}
		found = true
		if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > 40 {
			t.Errorf("Reconcile has %d lines, the limit is 40", lines)
		}
		if text := source[set.Position(f.Doc.Pos()).Offset:set.Position(f.End()).Offset]; !bytes.Contains(readme, text) {
			t.Error("README.md does not quote Reconcile as it is")
		}
	}
	if !found {
		t.Error("controller/reconcile.go has no Reconcile")
	}
}

// Nothing visible at the top but the rooms.
func TestLayoutTop(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatalf("listing the files of the checkout: %v", err)
	}
	allowed := strings.Fields("cmd sync clusters render controller examples go.mod go.sum Makefile README.md")
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		top, _, _ := strings.Cut(s.Text(), "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			t.Errorf("%s is not of the top level", s.Text())
		}
	}
}
