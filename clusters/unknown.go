package clusters

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unknownHints tell what to do instead about fields that people will expect.
var unknownHints = map[string]string{
	"spec.source.auth.sshKeyFile": "unknown field, write ssh: {keyFile: FILE, knownHostsFile: FILE}",
	"spec.source.auth.caData":     "unknown field, name a file in caFile",
	"spec.source.branch":          "unknown field, write ref: {branch: NAME}",
	"spec.source.tag":             "unknown field, write ref: {tag: NAME}",
	"spec.source.commit":          "unknown field, write ref: {commit: ID}",
	"spec.source.auth.token":      "a secret is never written here: name a file that holds it in tokenFile",
	"spec.source.auth.password":   "a secret is never written here: name a file that holds it in passwordFile",
	"spec.exclude":                "unknown field, write daemonSets: {exclude: [{names: [NAMESPACE/NAME]}]}",
	"spec.kubeconfig.secretRef":   "not supported: Secrets register clusters by themselves: see spec.clusters.hub of the fleet file",
}

// unknown words the fault of a field that a wire struct does not have.
func unknown[V any](path, key string, known map[string]V) string {
	if hint, ok := unknownHints[path]; ok {
		return hint
	}
	if key == "<<" {
		return "merge keys are not accepted here: write the fields out"
	}
	names := slices.Sorted(maps.Keys(known))
	if near := Nearest(key, names); near != "" {
		return fmt.Sprintf("unknown field, did you mean %q?", near)
	}
	return "unknown field, known are " + strings.Join(names, ", ")
}

// Nearest returns the name that a misspelt one most likely stands for, empty
// when none is near.
func Nearest(word string, names []string) string {
	const long = 64 // longer words are no slip of a finger
	if len(word) > long {
		return ""
	}
	best, least := "", 3
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
