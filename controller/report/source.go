package report

import (
	"fmt"
	"time"

	"rollcall.dev/rollcall/controller/coverage"
)

// sourceFindings are what is wrong with the commit that is judged.
func sourceFindings(s Scope) []Finding {
	out := []Finding{}
	rev, cause := s.Revision, coverage.Cause{Kind: "fleet", Key: "source"}
	if s.Stale != nil {
		out = append(out, NewFinding("", "SourceStale", fmt.Sprintf("%v; commit %s of %s is judged, which was fetched at %s", s.Stale, short(rev.Commit), rev.Ref, rev.FetchedAt.UTC().Format(time.RFC3339)), cause))
	}
	if rev.Replaced != "" {
		cause.Key = "source history " + rev.Commit
		out = append(out, NewFinding("", "SourceRewritten", fmt.Sprintf("%s led to commit %s before and leads to %s now, whose history does not have it", rev.Ref, short(rev.Replaced), short(rev.Commit)), cause))
	}
	return out
}
