package render

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// falseSeparator finds a line that kustomize takes for the end of a document
// and YAML for more of it, such as "---#". Kustomize would then parse a part
// of the file as a document of its own, in which an alias cycle that the scan
// took for plain text ends the process.
func falseSeparator(data []byte) int {
	for at := 0; at < len(data); {
		if after, ok := bytes.CutPrefix(data[at:], []byte("---")); ok && blankNotInYAML(after) {
			return at
		}
		next := bytes.IndexByte(data[at:], '\n')
		if next < 0 {
			return -1
		}
		at += next + 1
	}
	return -1
}

// blankNotInYAML tells whether what follows "---" is blank or a comment to
// kustomize's splitDocuments, yet does not end the mark for YAML.
func blankNotInYAML(after []byte) bool {
	r, _ := utf8.DecodeRune(after)
	switch r {
	case ' ', '\t', '\r', '\n':
		return false
	}
	return r == '#' || unicode.IsSpace(r)
}
