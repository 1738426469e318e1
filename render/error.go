package render

import (
	"errors"
	"fmt"
	"strconv"
)

// The codes of an Error: what is wrong, in one word that does not change.
const (
	RemoteReference       = "RemoteReference"
	UndefinedSubstitution = "UndefinedSubstitution"
	RenderEmpty           = "RenderEmpty"
	NoNamespace           = "NoNamespace"
	PatchMatchesNothing   = "PatchMatchesNothing"
	PatchEmpty            = "PatchEmpty"
	PatchMatchesSeveral   = "PatchMatchesSeveral"
	DaemonSetDropped      = "DaemonSetDropped"
	ObjectDropped         = "ObjectDropped"
	TolerationsDropped    = "TolerationsDropped"
	SelectorRelabelled    = "SelectorRelabelled"
	TemplateRelabelled    = "TemplateRelabelled"
	DaemonSetRenamed      = "DaemonSetRenamed"
	DeprecatedField       = "DeprecatedField"
	ClusterUnmatched      = "ClusterUnmatched"
	InvalidManifest       = "InvalidManifest"
	OverBudget            = "OverBudget"
	PathNotFound          = "PathNotFound"
	Unsupported           = "Unsupported"
)

// ErrUnmatched tells that no target of the fleet selects the cluster.
var ErrUnmatched = errors.New("no target matches")

// Error is one fault of a fleet file or a repository. Message says what to do
// about it; it never holds a value of a manifest that could be secret.
type Error struct {
	Code    string
	File    string // below the root of the artifact; empty for the fleet file
	Field   string // a field's path, an object, or "line n"
	Message string
	Err     error
}

func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.File != "" {
		s = strconv.Quote(e.File) + ": " + s
	}
	if e.Err != nil {
		s = fmt.Sprintf("%s: %v", s, e.Err)
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
