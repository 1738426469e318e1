package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"
)

// How far a request came. It tells a blackhole from a server that hangs.
const (
	connecting int32 = iota
	shakingHands
	awaitingAnswer
	readingAnswer
	askingPlugin // before the first request of a cluster with an exec plugin
)

// maxRetryAfter is how long a server may ask us to wait before we try again.
const maxRetryAfter = 5

// bounded is a transport that notes how far each request came and counts the
// bytes of each answer after they were unpacked.
type bounded struct {
	base      http.RoundTripper
	session   *session
	perAnswer int64
	budget    *budget
}

// budget is what one observation may read in all.
type budget struct {
	read  atomic.Int64 // bytes so far
	limit int64
}

// interrupted is an error of a request that ran out of time, and where.
type interrupted struct {
	phase int32
	after time.Duration // since the request began, where a bound of the library's ended it before the deadline
	err   error
}

func (i *interrupted) Error() string { return i.err.Error() }

func (i *interrupted) Unwrap() error { return i.err }

// Timeout is what url.Error asks of the error that it wraps.
func (i *interrupted) Timeout() bool { return isTimeout(i.err) }

// WrappedRoundTripper lets idle connections be found and closed.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.base }

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	var phase atomic.Int32
	set := func(p int32) {
		phase.Store(p)
		b.session.phase.Store(p)
	}
	set(connecting)
	began := time.Now()
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		TLSHandshakeStart: func() { set(shakingHands) },
		GotConn: func(info httptrace.GotConnInfo) {
			b.session.reached.Store(info.Conn.RemoteAddr().String())
			set(awaitingAnswer)
		},
		GotFirstResponseByte: func() { set(readingAnswer) },
	})
	response, err := b.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, mark(ctx, began, phase.Load(), err)
	}
	b.session.noteClock(began, response.Header)
	forgetLongWaits(ctx, response)
	response.Body = &boundedBody{ReadCloser: response.Body, ctx: ctx, began: began, left: b.perAnswer, limit: b.perAnswer, budget: b.budget}
	return response, nil
}

// mark keeps how far a request came when its time ran out; other errors pass
// unchanged, because client-go compares some of them.
func mark(ctx context.Context, began time.Time, phase int32, err error) error {
	if ctx.Err() != nil {
		return &interrupted{phase: phase, err: err}
	}
	if isTimeout(err) {
		return &interrupted{phase, time.Since(began), err}
	}
	return err
}

// forgetLongWaits makes client-go give up at once where a server asks it to
// come back after the deadline or much later: a wait of an hour is an answer.
func forgetLongWaits(ctx context.Context, r *http.Response) {
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil {
		return
	}
	deadline, has := ctx.Deadline()
	if seconds > maxRetryAfter || has && time.Until(deadline) < time.Duration(seconds)*time.Second {
		r.Header.Del("Retry-After")
	}
}

// boundedBody is an answer that ends in an error when it is too large.
type boundedBody struct {
	io.ReadCloser
	ctx    context.Context // of the request, to tell why reading failed
	began  time.Time
	left   int64
	limit  int64
	budget *budget
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &answerError{fmt.Errorf("the answer is larger than %s", size(b.limit))}
	}
	if b.budget.read.Add(int64(n)) > b.budget.limit {
		return 0, &answerError{fmt.Errorf("the answers of this cluster are larger than %s together", size(b.budget.limit))}
	}
	if err != nil && err != io.EOF {
		err = mark(b.ctx, b.began, readingAnswer, err)
	}
	return n, err
}

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
