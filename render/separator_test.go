package render

import (
	"errors"
	"testing"
)

func TestSeparators(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   string
		line   string // of the fault, empty for none
	}{
		"plain":          {"a document ends at ---", "a: 1\n---\nb: 2\n", ""},
		"comment":        {"a comment after a blank is one to both", "a: 1\n--- # b\nb: 2\n", ""},
		"carriage":       {"Windows ends lines with two characters", "a: 1\r\n---\r\nb: 2\r\n", ""},
		"last":           {"a mark may end the file", "a: 1\n---", ""},
		"certificate":    {"an indented dashes line is text", "a: |\n  ---#\n  -----BEGIN CERTIFICATE-----\n", ""},
		"hash":           {"kustomize splits here and YAML does not", "a\n---#x\n- &a [*a]\n", "line 2"},
		"hash first":     {"also as the first line", "---#x\na: 1\n", "line 1"},
		"no-break":       {"kustomize trims a space that YAML has for text", "a\n---\u00a0\n- &a [*a]\n", "line 2"},
		"vertical":       {"a vertical tab is a space to Go alone", "a\n---\v\nb\n", "line 2"},
		"line separator": {"Unicode's line separator is a space to Go", "a\n---\u2028b\n", "line 2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Scan("f.yaml", []byte(tc.data))
			e, _ := errors.AsType[*Error](err)
			switch {
			case tc.line == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.line != "" && (e == nil || e.Code != InvalidManifest || e.Field != tc.line):
				t.Errorf("%s: got %v, want %s at %s", tc.reason, err, InvalidManifest, tc.line)
			}
		})
	}
}
