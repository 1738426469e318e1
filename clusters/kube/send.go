package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"rollcall.dev/rollcall/clusters"
)

// metadataOnly asks for an object without what it holds. A server that cannot
// answer so must not answer otherwise.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

const (
	attempts      = 3
	attemptWithin = 35 * time.Second // a webhook may take 30 s
	firstWait     = 250 * time.Millisecond
)

// request is a request about one object, in JSON.
type request struct {
	access access // what a user must be allowed
	stage  string // what is being done
	method string
	path   string
	accept string // runtime.ContentTypeJSON when empty
	send   string // content type of the body
	body   []byte
	params map[string]string
	raced  bool // a conflict that is nobody's fields is one with another writer, and the request can be sent again
}

// answer is what a server says to a request.
type answer struct {
	code int
	body []byte
}

// send sends a request, and again where the server or the way to it had a
// moment's trouble. A refusal is final.
func (s *session) send(ctx context.Context, q request) (answer, error) {
	s.at(q.stage)
	wait := firstWait
	for attempt := 1; ; attempt++ {
		a, err := s.attempt(ctx, q)
		if err == nil {
			return a, nil
		}
		asked, passing := passes(err)
		passing = passing || q.raced && isRace(err)
		if !passing || attempt == attempts || ctx.Err() != nil {
			return a, &stepError{access: q.access, stage: q.stage, err: err}
		}
		select {
		case <-ctx.Done():
			return a, &stepError{access: q.access, stage: q.stage, err: err}
		case <-time.After(max(wait, asked)):
			wait *= 4
		}
	}
}

func (s *session) attempt(ctx context.Context, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	accept := q.accept
	if accept == "" {
		accept = runtime.ContentTypeJSON
	}
	r := s.groups[""].Verb(q.method).AbsPath(q.path).SetHeader("Accept", accept).MaxRetries(0)
	for name, value := range q.params {
		r = r.Param(name, value)
	}
	if q.body != nil {
		r = r.SetHeader("Content-Type", q.send).Body(q.body)
	}
	result := r.Do(quiet(ctx))
	var a answer
	result.StatusCode(&a.code)
	if err := result.Error(); err != nil {
		return a, err
	}
	a.body, _ = result.Raw()
	return a, nil
}

// passes tells whether an error may pass by itself, and after what wait where
// the server asks for one.
func passes(err error) (wait time.Duration, ok bool) {
	if _, ok := errors.AsType[*answerError](err); ok {
		return 0, false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		if code != http.StatusTooManyRequests && code < 500 {
			return 0, false
		}
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return time.Duration(seconds) * time.Second, seconds <= maxRetryAfter
	}
	return 0, isTimeout(err) || utilnet.IsConnectionReset(err) || utilnet.IsConnectionRefused(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// isRace tells a conflict with whoever wrote the object in the same moment from
// one about who owns which field.
func isRace(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) && len(owned(status.Status())) == 0
}

// decodeAs reads an answer as JSON of a kind. Every server that is none answers
// with something; what is not of the kind is not taken.
func decodeAs(q request, a answer, kind string, into any) error {
	var typed metav1.TypeMeta
	err := json.Unmarshal(a.body, &typed)
	if err == nil && typed.Kind != kind {
		err = fmt.Errorf("the server answered with a %s instead of a %s", strconv.Quote(typed.Kind), kind)
	}
	if err == nil {
		err = json.Unmarshal(a.body, into)
	}
	if err != nil {
		return &stepError{access: q.access, stage: q.stage, err: &answerError{fmt.Errorf("reading the answer: %w", err)}}
	}
	return nil
}

// metadata sends a request whose answer is an object's metadata.
func (s *session) metadata(ctx context.Context, q request) (*metav1.PartialObjectMetadata, int, error) {
	q.accept = metadataOnly
	a, err := s.send(ctx, q)
	if err != nil {
		return nil, a.code, err
	}
	m := &metav1.PartialObjectMetadata{}
	if err := decodeAs(q, a, "PartialObjectMetadata", m); err != nil {
		return nil, a.code, err
	}
	return m, a.code, nil
}

// isSecret tells whether an object is one that is never read.
func isSecret(ref clusters.Reference) bool { return ref.Group() == "" && ref.Kind == "Secret" }

// about is a request about an object.
func (s *session) about(ctx context.Context, ref clusters.Reference, verb, method string) (request, error) {
	r, err := s.resource(ctx, ref)
	if err != nil {
		return request{}, err
	}
	path, err := r.path(ref)
	if err != nil {
		return request{}, err
	}
	doing := map[string]string{"get": "reading", "patch": "applying", "delete": "deleting"}[verb]
	a := access{verb: verb, group: ref.Group(), resource: r.name, name: ref.Name}
	if r.namespaced {
		a.namespace = ref.Namespace
	}
	return request{access: a, stage: doing + " " + ref.String(), method: method, path: path}, nil
}
