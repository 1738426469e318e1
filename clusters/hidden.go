package clusters

import (
	"bytes"
	"fmt"
)

// hiddenText is what a Hidden prints as, whatever prints it.
const hiddenText = "[hidden]"

// Hidden is text that may hold a credential. It prints and encodes as a mark in
// its place, so that no log, error or report can show it by accident.
type Hidden struct{ data []byte }

// Hide returns data as a Hidden.
func Hide(data []byte) Hidden { return Hidden{data} }

// Reveal returns what is hidden, for who needs it to connect.
func (h Hidden) Reveal() []byte { return h.data }

// Equal tells whether two hide the same.
func (h Hidden) Equal(other Hidden) bool { return bytes.Equal(h.data, other.data) }

// String hides the text from fmt.
func (h Hidden) String() string { return hiddenText }

// GoString hides the text from %#v.
func (h Hidden) GoString() string { return hiddenText }

// Format hides the text from every verb.
func (h Hidden) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(hiddenText)) }

// MarshalText hides the text from encoders, of logs too.
func (h Hidden) MarshalText() ([]byte, error) { return []byte(hiddenText), nil }

// MarshalJSON hides the text from JSON and YAML.
func (h Hidden) MarshalJSON() ([]byte, error) { return []byte(`"` + hiddenText + `"`), nil }
