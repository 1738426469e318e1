package recorded

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"rollcall.dev/rollcall/clusters"
)

const (
	// maxPacked and maxUnpacked bound a snapshot that comes from the network:
	// a cluster of 5,000 nodes and 150,000 pods has a twentieth of that.
	maxPacked   = 128 << 20
	maxUnpacked = 1 << 30

	// patience bounds a transfer whose context has no deadline.
	patience = time.Minute
)

// fetched is what a location gave last.
type fetched struct {
	etag string
	body []byte
}

// remote gets a snapshot from its location and reads it. A server that says that
// it did not change sends nothing.
func (o *Observer) remote(ctx context.Context, cl clusters.Cluster, want clusters.Want) (clusters.Live, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	location := cl.Recorded[0]
	o.mu.Lock()
	last := o.last[location]
	o.mu.Unlock()
	now, err := get(ctx, location, cl.RecordedAuth, last)
	if err != nil {
		return clusters.Live{}, err
	}
	o.mu.Lock()
	if o.last == nil {
		o.last = map[string]fetched{}
	}
	o.last[location] = now
	o.mu.Unlock()
	c := newCollector(want)
	c.reading = location
	if err := c.stream(checked{ctx, bytes.NewReader(now.body)}); err != nil {
		return clusters.Live{}, failed("reading the snapshot", err)
	}
	if !c.taken {
		return clusters.Live{}, failed("reading the snapshot", errors.New("what was got is no snapshot: write it with rollcall record"))
	}
	l, err := c.live()
	if err != nil {
		return clusters.Live{}, failed("reading the snapshot", err)
	}
	return l, nil
}

func failed(stage string, err error) error {
	return &clusters.ObserveError{State: clusters.Failed, Stage: stage, Err: err}
}

const getting = "getting the snapshot"

// get asks a location for its snapshot. No error has a token or a login in it.
func get(ctx context.Context, location string, auth clusters.RecordedAuth, last fetched) (fetched, error) {
	client, done, err := Client(auth.CAFile)
	if err != nil {
		return fetched{}, failed(getting, err)
	}
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return fetched{}, failed(getting, errors.New("its location is no URL"))
	}
	if err := Authorize(req, auth.TokenFile); err != nil {
		return fetched{}, failed(getting, err)
	}
	if last.etag != "" {
		req.Header.Set("If-None-Match", last.etag)
	}
	res, err := client.Do(req)
	if err != nil {
		return fetched{}, &clusters.ObserveError{State: clusters.Unreachable, Stage: getting, Err: Plain(err)}
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && last.etag != "":
		return last, nil
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return fetched{}, &clusters.ObserveError{State: clusters.Denied, Stage: getting, Err: fmt.Errorf("%q answered %s: check recordedAuth.tokenFile", req.URL.Host, res.Status)}
	case res.StatusCode != http.StatusOK:
		return fetched{}, failed(getting, fmt.Errorf("%q answered %s", req.URL.Host, res.Status))
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxPacked+1))
	if err != nil {
		return fetched{}, &clusters.ObserveError{State: clusters.Unreachable, Stage: getting, Err: fmt.Errorf("it broke off: %w", Plain(err))}
	}
	if len(body) > maxPacked {
		return fetched{}, failed(getting, fmt.Errorf("it is larger than %d MiB", maxPacked>>20))
	}
	return fetched{res.Header.Get("ETag"), body}, nil
}

// Client speaks to the places where snapshots lie. It follows no redirect to
// another host, for that would be sent the token.
func Client(caFile string) (client *http.Client, done func(), err error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second, DisableCompression: true,
	}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the CA: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, nil, fmt.Errorf("reading the CA: file %q has no certificate in PEM", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client = &http.Client{Transport: transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
			return fmt.Errorf("it redirects to %q, which is not followed", req.URL.Host)
		}
		return nil
	}}
	return client, transport.CloseIdleConnections, nil
}

// Authorize gives a request the token of a file, read now.
func Authorize(req *http.Request, tokenFile string) error {
	if tokenFile == "" {
		return nil
	}
	data, err := os.ReadFile(tokenFile)
	if err != nil {
		return fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return fmt.Errorf("reading the token: file %q is empty or has several lines", tokenFile)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// Plain drops the URL that errors of the HTTP client repeat.
func Plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// unpacked bounds what comes out of gzip: a few bytes may hold a disk full.
func unpacked(z *gzip.Reader) io.Reader {
	return &capped{in: z, left: maxUnpacked}
}

type capped struct {
	in   io.Reader
	left int64
}

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, fmt.Errorf("it has more than %d MiB unpacked", maxUnpacked>>20)
	}
	return n, err
}
