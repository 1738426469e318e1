package gitrepo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// limits are the bytes that are read of a server's answers, and how long it may
// say nothing.
type limits struct {
	refs int64 // the list of refs
	pack int64
	idle time.Duration
}

// defaultLimits are far above what a repository of manifests needs. A server
// that works on a large pack says so every few seconds.
func defaultLimits() limits { return limits{refs: 64 << 20, pack: 2 << 30, idle: time.Minute} }

// connectLimit is how long a server may take to accept a connection.
const connectLimit = 15 * time.Second

// maxSaid is how much of a server's own words is repeated in an error.
const maxSaid = 300

// What a server may answer instead of Git. Each is recognised by errors.As
// through whatever the HTTP client and go-git put around it.
type (
	statusError   int    // an HTTP status that is not 200
	saidError     string // Git's own ERR line
	limitError    int64  // more bytes than this
	redirectError string // to this host
	notGitError   string // an answer of this content type
)

func (e statusError) Error() string {
	return fmt.Sprintf("the server answered HTTP %d %s", int(e), http.StatusText(int(e)))
}

func (e saidError) Error() string { return fmt.Sprintf("the server refused: %q", string(e)) }

func (e limitError) Error() string {
	return fmt.Sprintf("the server's answer has more than %d bytes", int64(e))
}

func (e redirectError) Error() string {
	return fmt.Sprintf("the server redirects to %q, another host, which is not followed", string(e))
}

func (e notGitError) Error() string {
	return fmt.Sprintf("the server answered with %q and not with Git's protocol: is this the URL of a repository?", string(e))
}

// httpClient is a client of its own for one fetch: nothing global is touched.
// Deadlines come from the context, and from a server that says nothing.
func (r *Repository) httpClient() (client *http.Client, closeIdle func(), err error) {
	config, err := r.auth.tls()
	if err != nil {
		return nil, nil, err
	}
	dialer := &net.Dialer{Timeout: connectLimit}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, TLSHandshakeTimeout: connectLimit,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return newTimed(context.Background(), conn, r.limits.idle), nil // the request's context ends the request
		},
	}
	client = &http.Client{Transport: guard{next: base, limits: r.limits}, CheckRedirect: sameHost}
	return client, base.CloseIdleConnections, nil
}

// sameHost refuses every other host and port, before anything is sent there.
// go-git refuses the step from https to http, and any redirect of a POST.
func sameHost(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	if from.Scheme == "https" && req.URL.Scheme != "https" {
		return redirectError(req.URL.Host)
	}
	if req.URL.Hostname() == from.Hostname() && port(req.URL) == port(from) {
		return nil
	}
	if req.URL.Host == from.Host && from.Scheme == "http" && req.URL.Scheme == "https" {
		return nil
	}
	return redirectError(req.URL.Host)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// guard lets through only what Git's smart protocol may be, up to its limits,
// so that no login page and no endless body is taken for refs or packs.
type guard struct {
	next   http.RoundTripper
	limits limits
}

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 && res.Header.Get("Location") != "" {
		return res, nil
	}
	if err := g.check(req, res); err != nil {
		_ = res.Body.Close() // the error is about what is in it
		return nil, err
	}
	return res, nil
}

func (g guard) check(req *http.Request, res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		return statusError(res.StatusCode)
	}
	want, limit := "application/x-git-upload-pack-advertisement", g.limits.refs
	if req.Method == http.MethodPost {
		want, limit = "application/x-git-upload-pack-result", g.limits.pack
	}
	if got, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); got != want {
		return notGitError(got)
	}
	r := bufio.NewReader(&capped{r: res.Body, left: limit, limit: limit})
	if said, ok := errLine(r); ok {
		return saidError(said)
	}
	res.Body = body{Reader: r, Closer: res.Body}
	return nil
}

// errLine looks for a packet "ERR …" at the start of an answer, which go-git
// passes over where it expects the shallow commits.
func errLine(r *bufio.Reader) (string, bool) {
	head, err := r.Peek(4)
	if err != nil {
		return "", false
	}
	n, err := strconv.ParseInt(string(head), 16, 32)
	if err != nil || n < 8 { // a flush has nothing behind it to wait for
		return "", false
	}
	if head, err = r.Peek(8); err != nil || string(head[4:]) != "ERR " {
		return "", false
	}
	line, _ := r.Peek(min(int(n), maxSaid)) // what there is of it
	return strings.TrimSpace(string(line[min(8, len(line)):])), true
}

type body struct {
	io.Reader
	io.Closer
}

// capped fails where io.LimitReader would end as if all were well.
type capped struct {
	r           io.Reader
	left, limit int64
}

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, limitError(c.limit)
	}
	return n, err
}

// isAnswer tells errors that the server meant from those of the way to it.
func isAnswer(err error) bool {
	var (
		status   statusError
		said     saidError
		limit    limitError
		redirect redirectError
		notGit   notGitError
	)
	return errors.As(err, &status) || errors.As(err, &said) || errors.As(err, &limit) ||
		errors.As(err, &redirect) || errors.As(err, &notGit)
}
