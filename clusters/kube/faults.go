package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollcall.dev/rollcall/clusters"
)

// stepError is an error of one step of an observation: of an access, or of a
// stage that needs none.
type stepError struct {
	access access
	stage  string
	err    error
}

func (e *stepError) Error() string { return e.err.Error() }

func (e *stepError) Unwrap() error { return e.err }

// fault tells what an error says of the cluster.
func (s *session) fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	stage, need := s.now(), access{}
	if step, ok := errors.AsType[*stepError](err); ok {
		need, err = step.access, step.err
		if stage = step.stage; stage == "" {
			stage = need.String()
		}
	}
	state, err := s.judge(ctx, need, err)
	return &clusters.ObserveError{State: state, Stage: stage, Err: err}
}

func (s *session) judge(ctx context.Context, need access, err error) (clusters.ObserveState, error) {
	if _, ok := errors.AsType[*answerError](err); ok {
		return clusters.Failed, plain(err)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return s.refusal(need, int(status.Status().Code), err)
	}
	if text, ok := s.pluginError(err); ok && ctx.Err() == nil {
		return clusters.Failed, fmt.Errorf("running exec plugin %q: %s", s.plugin, text)
	}
	return clusters.Unreachable, s.explain(ctx, err)
}

// refusal is an answer of the server that is an error.
func (s *session) refusal(need access, code int, err error) (clusters.ObserveState, error) {
	switch {
	case code == http.StatusUnauthorized:
		return clusters.Denied, fmt.Errorf("the server does not accept the credentials: %w; check with: kubectl auth whoami%s", err, s.kubectl)
	case code == http.StatusForbidden && need.resource != "":
		return clusters.Denied, fmt.Errorf("may not %s %s: %w; check with: kubectl auth can-i %s%s", need.verb, need.resource, err, need.canI(), s.kubectl)
	case code == http.StatusForbidden:
		return clusters.Denied, err
	case code/100 == 3:
		return clusters.Failed, fmt.Errorf("the server redirects, which is not followed because it would carry the credentials elsewhere: %w", err)
	case code == http.StatusTooManyRequests:
		return clusters.Failed, fmt.Errorf("the server does not answer now and asks to come back later: %w", err)
	default:
		return clusters.Failed, err
	}
}

// canI is the access in the words of kubectl auth can-i.
func (a access) canI() string {
	words := a.verb + " " + a.resource
	if a.group != "" {
		words += "." + a.group
	}
	if a.name != "" {
		words += "/" + a.name
	}
	if a.namespace != "" {
		words += " -n " + a.namespace
	}
	return words
}

// pluginError finds what client-go says of an exec plugin; it has no type. Our
// guard's name is replaced by the plugin's.
func (s *session) pluginError(err error) (string, bool) {
	_, text, found := strings.Cut(err.Error(), "getting credentials: ")
	if s.plugin == "" || !found {
		return "", false
	}
	text = strings.TrimPrefix(text, "exec: ")
	return strings.ReplaceAll(text, s.guard, s.plugin), true
}

// explain puts a cause that users can act on before a network error.
func (s *session) explain(ctx context.Context, err error) error {
	cause := plain(err)
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("interrupted: %w", cause)
	}
	if ctx.Err() != nil || isTimeout(err) {
		return s.outOfTime(err)
	}
	if sentence := s.certificateFault(err); sentence != "" {
		return fmt.Errorf("%s: %w", sentence, cause)
	}
	var dns *net.DNSError
	var plainHTTP tls.RecordHeaderError
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("the name of %q does not resolve: %w", s.host, cause)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%q refuses connections, nothing listens there: %w", s.host, cause)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fmt.Errorf("no route to %q: %w", s.host, cause)
	case errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%q broke the connection off: %w", s.host, cause)
	case errors.As(err, &plainHTTP), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%q does not speak TLS: %w", s.host, cause)
	default:
		return fmt.Errorf("talking to %q: %w", s.host, cause)
	}
}

func (s *session) certificateFault(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return fmt.Sprintf("the certificate of %q is not signed by the certificate-authority of the kubeconfig: the kubeconfig is of another cluster, or a proxy stands between", s.host)
	case errors.As(err, &name):
		return fmt.Sprintf("the certificate of %q is for another name; the kubeconfig may set tls-server-name", s.host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %q has expired or is not valid yet", s.host)
	default:
		return ""
	}
}

// outOfTime tells how far the request came.
func (s *session) outOfTime(err error) error {
	phase, limit := s.phase.Load(), s.limit
	if e, ok := errors.AsType[*interrupted](err); ok {
		phase = e.phase
		if e.after > 0 {
			limit = e.after
		}
	}
	if _, ok := s.pluginError(err); ok {
		phase = askingPlugin
	}
	within := limit.Round(100 * time.Millisecond)
	var what string
	switch phase {
	case askingPlugin:
		what = fmt.Sprintf("exec plugin %q gave no credential within %v and was ended", s.plugin, within)
	case shakingHands:
		what = fmt.Sprintf("%q took the connection but did not begin TLS within %v", s.host, within)
	case awaitingAnswer:
		what = fmt.Sprintf("%q took the request but did not answer within %v", s.host, within)
	case readingAnswer:
		what = fmt.Sprintf("%q began to answer but did not finish within %v", s.host, within)
	default:
		what = fmt.Sprintf("no connection to %q within %v: a firewall, a VPN that is off or a wrong address", s.host, within)
	}
	return &timeoutError{what, err}
}

// timeoutError keeps its cause for errors.Is but does not repeat its text.
type timeoutError struct {
	text  string
	cause error
}

func (t *timeoutError) Error() string { return t.text }

func (t *timeoutError) Unwrap() error { return t.cause }

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// plain drops the layers whose text repeats the URL or says nothing.
func plain(err error) error {
	if e, ok := errors.AsType[*answerError](err); ok {
		return e.err
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
