package report

import (
	"regexp"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// command is a kubectl command for a POSIX shell, on the cluster that it is
// about. Names come from clusters: none can end its own word.
func command(k *clusters.Kubeconfig, words []string) string {
	if len(words) == 0 {
		return ""
	}
	all := []string{"kubectl"}
	if k != nil && len(k.Paths) == 1 {
		all = append(all, "--kubeconfig", k.Paths[0])
	}
	if k != nil && k.Context != "" {
		all = append(all, "--context", k.Context)
	}
	all = append(all, words...)
	for i, w := range all {
		all[i] = quote(w)
	}
	return strings.Join(all, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_%+,./:=@-]+$`)

func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
