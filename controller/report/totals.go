package report

import "fmt"

func totals(r Report) string {
	s := r.Summary
	known := s.Clusters - s.Unknown
	text := fmt.Sprintf("%d of %d intended places covered", s.Covered, s.Intended)
	if s.UpToDate != nil {
		text += fmt.Sprintf(", %d up to date", *s.UpToDate)
	}
	text += fmt.Sprintf("; %s on %s of %s", plural(s.DaemonSets, "DaemonSet"), plural(s.Nodes, "node"), plural(known, "known cluster"))
	if s.Excused > 0 {
		text += fmt.Sprintf("; %d excused", s.Excused)
	}
	if s.Unknown > 0 {
		text += fmt.Sprintf("; %s UNKNOWN", plural(s.Unknown, "cluster"))
	}
	text += fmt.Sprintf("; findings: %d error, %d warning, %d info", s.Findings.Error, s.Findings.Warning, s.Findings.Info)
	if s.Renders != nil {
		text += fmt.Sprintf("; overlays: %d rendered, %d reused", s.Renders.Built, s.Renders.Reused)
	}
	return text
}
