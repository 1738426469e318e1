package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/sync/gitrepo"
	"rollcall.dev/rollcall/sync/source"
)

// fetches answers each call with the next error, and a commit where that is nil.
type fetches struct {
	errs []error
	ever bool
}

func (f *fetches) Last(context.Context) (source.Artifact, error) {
	if !f.ever {
		return source.Artifact{}, gitrepo.ErrNeverFetched
	}
	return source.Artifact{Revision: source.Revision{Commit: "good", Ref: "main", FetchedAt: time.Unix(0, 0)}, Files: fstest.MapFS{}}, nil
}

func (f *fetches) Fetch(context.Context) (source.Artifact, error) {
	err := f.errs[0]
	f.errs = f.errs[1:]
	if err != nil {
		return source.Artifact{}, err
	}
	f.ever = true
	return source.Artifact{Revision: source.Revision{Commit: "good", FetchedAt: time.Unix(0, 0)}, Files: fstest.MapFS{}}, nil
}

// Once there was a commit, a source that fails is a finding and that commit is
// judged; before that there is nothing to report.
func TestSourceStale(t *testing.T) {
	gone := errors.New("gone")
	cases := map[string]struct {
		reason string
		errs   []error
		commit string // that the last pass judges; empty: it fails
		stale  bool
	}{
		"Good":      {"a commit is a commit", []error{nil}, "good", false},
		"NeverGood": {"without any commit there is no report", []error{gone}, "", false},
		"Stale":     {"the last good commit is judged", []error{nil, gone, gone}, "good", true},
		"Recovered": {"once it answers again nothing is stale", []error{nil, gone, nil}, "good", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPass(streams{strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}}, clusters.Fleet{}, nil, clusters.Want{}, time.Minute, outputFlags{nodes: "attention"})
			defer p.close()
			p.fetcher = &fetches{errs: tc.errs}
			for range tc.errs[1:] {
				if _, err := p.once(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			r, err := p.once(t.Context())
			if tc.commit == "" {
				if !errors.Is(err, gone) {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			if err != nil || r.Source.Commit != tc.commit {
				t.Fatalf("%s: %v, source %+v", tc.reason, err, r.Source)
			}
			stale := len(r.Findings) == 1 && r.Findings[0].Code == "SourceStale" && strings.Contains(r.Findings[0].Message, "gone; commit good of main is judged, which was fetched at 1970-01-01T00:00:00Z") && !r.Complete && r.Source.State == "Stale"
			if stale != tc.stale || len(r.Findings) > 0 != tc.stale {
				t.Errorf("%s: findings %+v", tc.reason, r.Findings)
			}
		})
	}
}
