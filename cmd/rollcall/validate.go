package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/render"
	"rollcall.dev/rollcall/render/build"
	"rollcall.dev/rollcall/render/check"
	"rollcall.dev/rollcall/render/validate"
	"rollcall.dev/rollcall/sync/source"
)

// checkAll renders clusters side by side and judges what comes of it.
func checkAll(ctx context.Context, r *build.Renderer, a source.Artifact, f clusters.Fleet, all []clusters.Cluster, strict bool) (check.Result, error) {
	v := validate.New()
	found := make([][]check.Issue, len(all))
	slots := make(chan struct{}, parallelClusters)
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			d, err := r.Render(ctx, a, f, c)
			found[i] = issuesOf(a, v, c.Name, d, err)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return check.Result{}, err
	}
	out := check.Result{Commit: a.Revision.Commit, Issues: check.Merge(slices.Concat(found...), strict)}
	for _, c := range all {
		out.Clusters = append(out.Clusters, c.Name)
	}
	stats := r.Stats()
	out.Built, out.Shared = stats.Built, stats.Shared
	return out, nil
}

// issuesOf are those of one cluster: of its render, and of its objects.
func issuesOf(a source.Artifact, v *validate.Validator, cluster string, d render.Desired, err error) []check.Issue {
	faults := v.Objects(d.Objects)
	judged := slices.ContainsFunc(faults, func(f validate.Fault) bool { return !f.Warning })
	var out []check.Issue
	if e, ok := errors.AsType[*render.Error](err); err != nil && !(judged && ok && e.Code == render.InvalidManifest && e.File == d.Overlay) {
		out = append(out, issueOf(cluster, err)) // else it is told of below, with its line
	}
	for i := range d.Warnings {
		if d.Warnings[i].Code != render.InvalidManifest { // unknown fields, likewise
			out = append(out, issueOf(cluster, &d.Warnings[i]))
		}
	}
	if len(faults) == 0 {
		return out
	}
	files := read(a.Files, d.Inputs)
	for _, f := range faults {
		u := &d.Objects[f.Object]
		i := check.Issue{Level: check.Error, Code: f.Code, Object: render.Name(u), Field: f.Path, Message: f.Message, Clusters: []string{cluster}}
		if f.Warning {
			i.Level = check.Warning
		}
		at := render.Locate(files, originOf(d, u), u, f.Path)
		i.File, i.Line = at.File, at.Line
		out = append(out, i)
	}
	return out
}

// originOf is where an object is declared; one that is made is the overlay's.
func originOf(d render.Desired, u *unstructured.Unstructured) render.Origin {
	if o, ok := d.Origins[render.Identity(u)]; ok {
		return o
	}
	return render.Origin{File: d.Overlay, Name: u.GetName(), Namespace: u.GetNamespace()}
}

var lineField = regexp.MustCompile(`^line (\d+)$`)

// issueOf is a fault of a render. The level is that of its code in a report.
func issueOf(cluster string, err error) check.Issue {
	i := check.Issue{Level: check.Error, Code: "RenderFailed", Message: err.Error(), Clusters: []string{cluster}}
	if errors.Is(err, render.ErrUnmatched) {
		i.Code, i.Level = render.ClusterUnmatched, check.Warning
		return i
	}
	e, ok := errors.AsType[*render.Error](err)
	if !ok {
		return i
	}
	i.Code, i.File, i.Field, i.Message = e.Code, e.File, e.Field, e.Message
	if e.Err != nil {
		i.Message += ": " + e.Err.Error()
	}
	if m := lineField.FindStringSubmatch(e.Field); m != nil {
		i.Line, _ = strconv.Atoi(m[1])
		i.Field = ""
	}
	for _, c := range report.Codes {
		if c.Name == e.Code {
			i.Level = map[report.Severity]string{report.Error: check.Error, report.Warning: check.Warning, report.Info: check.Note}[c.Severity]
		}
	}
	return i
}

// read parses the manifests that a build read. What cannot be read was told of by
// the build.
func read(files fs.FS, inputs []render.Input) map[string]render.Parsed {
	out := map[string]render.Parsed{}
	for _, in := range inputs {
		if in.Hash == render.Absent || in.Hash == render.Folder || !slices.Contains([]string{".yaml", ".yml", ".json", ""}, path.Ext(in.Path)) {
			continue
		}
		data, err := fs.ReadFile(files, in.Path)
		if err != nil {
			continue
		}
		if p, err := render.Parse(in.Path, data); err == nil {
			out[in.Path] = p
		}
	}
	return out
}

// printCheck prints a result and says by the status whether it is clean.
func printCheck(s streams, r check.Result, output string) error {
	var data []byte
	var err error
	switch output {
	case "table", "text", "":
		data = []byte(report.Printable(r.Text()))
	case "sarif":
		data, err = r.SARIF(strings.TrimSpace(version()))
		data = append(data, '\n')
	case "junit":
		data, err = r.JUnit()
	case "json":
		return errors.Join(writeJSON(s.out, r), failed(r))
	default:
		return fmt.Errorf("--output %q: use text, json, sarif or junit", output)
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if _, err := s.out.Write(data); err != nil {
		return err
	}
	return failed(r)
}

func failed(r check.Result) error {
	if r.Count(check.Error) == 0 {
		return nil
	}
	return &outcome{exitFound, ""}
}
