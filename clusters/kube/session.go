package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"rollcall.dev/rollcall/clusters"
)

// session is what one observation needs to talk to one cluster.
type session struct {
	host     string
	route    Route
	kubectl  string        // flags with which kubectl reaches the same cluster
	plugin   string        // exec plugin, empty without one
	guard    string        // binary that starts it
	limit    time.Duration // of an observation; of one request where following
	pageSize int
	maxPages int
	codecs   serializer.CodecFactory
	http     *http.Client
	groups   map[string]rest.Interface
	// following tells that requests may go on for minutes, and that there is no
	// end to what is read.
	following bool

	phase   atomic.Int32 // how far the newest request came
	reached atomic.Value // string: address of the newest connection
	mu      sync.Mutex
	stage   string // what is being done, for the case that it never returns

	discovered discovered

	credential clusters.Credential
	clockSeen  bool
}

// access is one verb on one resource: what is asked of the API server, and
// what a user must be allowed.
type access struct {
	verb, group, resource, namespace, name string
}

func (a access) String() string {
	switch {
	case a.name != "":
		return fmt.Sprintf("reading %s %q", a.resource, a.name)
	case a.namespace != "":
		return fmt.Sprintf("listing %s in namespace %q", a.resource, a.namespace)
	default:
		return "listing " + a.resource
	}
}

// at notes what is done next.
func (s *session) at(stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stage = stage
}

func (s *session) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stage
}

// answerError is an answer that was understood to be wrong: the server was
// reached, and trying again is of no use.
type answerError struct{ err error }

func (a *answerError) Error() string { return a.err.Error() }

func (a *answerError) Unwrap() error { return a.err }

// version is empty where reading it is forbidden.
func (s *session) version(ctx context.Context) (string, error) {
	const stage = "contacting the API server"
	s.at(stage)
	body, err := s.groups[""].Get().AbsPath("/version").MaxRetries(maxRetries).Do(quiet(ctx)).Raw()
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", &stepError{stage: stage, err: err}
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil || info.GitVersion == "" {
		return "", &stepError{stage: stage, err: &answerError{errors.New("what answers at /version is no Kubernetes API server")}}
	}
	return info.GitVersion, nil
}

// maxRetries is for answers that ask for it with a Retry-After, and for
// connections that were reset.
const maxRetries = 3

// get reads one object.
func get[T runtime.Object](ctx context.Context, s *session, a access) (T, error) {
	s.at(a.String())
	return decode[T](s, a, s.groups[a.group].Get().NamespaceIfScoped(a.namespace, a.namespace != "").Resource(a.resource).Name(a.name).MaxRetries(maxRetries).Do(quiet(ctx)))
}

// query narrows a list.
type query struct{ labels, fields string }

// pages reads a list page by page and appends what keep makes of each, so that
// no more than one page is held untrimmed.
//
// When a later page has expired, because the list was read so slowly that its
// state was compacted away, the list is read once more from the start.
func pages[L runtime.Object, T any](ctx context.Context, s *session, a access, q query, keep func([]T, L) ([]T, error)) ([]T, error) {
	s.at(a.String())
	out, err := onePass(ctx, s, a, q, keep)
	if e, ok := errors.AsType[*expired](err); ok {
		if out, err = onePass(ctx, s, a, q, keep); errors.As(err, &e) {
			err = &stepError{access: a, err: &answerError{fmt.Errorf("the list expired twice while it was read: %w", e.err)}}
		}
	}
	return out, err
}

// expired is a 410 on a page after the first.
type expired struct{ err error }

func (e *expired) Error() string { return e.err.Error() }

func onePass[L runtime.Object, T any](ctx context.Context, s *session, a access, q query, keep func([]T, L) ([]T, error)) ([]T, error) {
	var out []T
	seen := map[string]bool{}
	next := ""
	for range s.maxPages {
		list, err := page[L](ctx, s, a, q, next)
		if next != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			return nil, &expired{err}
		}
		if err != nil {
			return nil, err
		}
		if out, err = keep(out, list); err != nil {
			return nil, &stepError{access: a, err: &answerError{err}}
		}
		m, err := meta.ListAccessor(list)
		if err != nil || m.GetResourceVersion() == "" {
			return nil, &stepError{access: a, err: &answerError{errors.New("the list has no resourceVersion, so it does not come from a Kubernetes API server")}}
		}
		if next = m.GetContinue(); next == "" {
			return out, nil
		}
		if seen[next] {
			return nil, &stepError{access: a, err: &answerError{errors.New("the list does not end: a continue token came twice")}}
		}
		seen[next] = true
	}
	return nil, &stepError{access: a, err: &answerError{fmt.Errorf("the list does not end: more than %d pages", s.maxPages)}}
}

func page[L runtime.Object](ctx context.Context, s *session, a access, q query, next string) (L, error) {
	r := s.groups[a.group].Get().NamespaceIfScoped(a.namespace, a.namespace != "").Resource(a.resource).
		Param("limit", strconv.Itoa(s.pageSize)).MaxRetries(maxRetries)
	for _, p := range []struct{ name, value string }{{"continue", next}, {"labelSelector", q.labels}, {"fieldSelector", q.fields}} {
		if p.value != "" {
			r = r.Param(p.name, p.value)
		}
	}
	return decode[L](s, a, r.Do(quiet(ctx)))
}

// decode accepts an answer only if it is of the kind that was asked for:
// client-go itself makes an empty list of null and of a list of another kind.
func decode[T runtime.Object](s *session, a access, result rest.Result) (T, error) {
	var none T
	wrong := func(format string, args ...any) (T, error) {
		return none, &stepError{access: a, err: &answerError{fmt.Errorf(format, args...)}}
	}
	if err := result.Error(); err != nil {
		return none, &stepError{access: a, err: err}
	}
	var contentType string
	body, _ := result.ContentType(&contentType).Raw()
	info, ok := serializerFor(s.codecs, contentType)
	if !ok {
		return wrong("the server answered with %q instead of a Kubernetes object", contentType)
	}
	object, kind, err := info.Serializer.Decode(body, nil, nil)
	if err != nil {
		return wrong("reading the answer: %w", err)
	}
	got, ok := object.(T)
	if !ok {
		return wrong("the server answered with a %s instead of a %s", kind.Kind, strings.TrimPrefix(fmt.Sprintf("%T", none), "*v1."))
	}
	return got, nil
}

// serializerFor knows protobuf and JSON. What else a proxy may answer with is
// not even parsed.
func serializerFor(codecs serializer.CodecFactory, contentType string) (runtime.SerializerInfo, bool) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != runtime.ContentTypeProtobuf && mediaType != runtime.ContentTypeJSON {
		return runtime.SerializerInfo{}, false
	}
	return runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
}
