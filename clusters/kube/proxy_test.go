package kube_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"rollcall.dev/rollcall/clusters"
)

// proxy stands before a real API server: it notes what is asked of it, and has
// faults where a test wants them.
type proxy struct {
	path string // of a kubeconfig that leads through it

	mu    sync.Mutex
	asked []string // method, path and query of each request
	fault func(n int, r *http.Request) fault
	died  func() // called when a request is the last
	dead  bool

	running int // requests
}

// fault is what a proxy does with a request instead of passing it on.
type fault int

const (
	none       fault = iota
	refuse           // the connection breaks before the server has seen it
	loseAnswer       // the server does it, and nobody hears
	busy             // 429
	race             // 409 that is nobody's fields
	dieBefore        // as refuse, and nothing comes any more: who asked was killed
	dieAfter         // as loseAnswer, and nothing comes any more
)

// through starts a proxy as the user of a kubeconfig.
func through(t *testing.T, path string) *proxy {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	pass := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ErrorLog: log.New(io.Discard, "", 0)}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.count(1)
		defer p.count(-1)
		r = r.WithContext(context.WithoutCancel(r.Context())) // what was sent is done, whoever waits
		f := p.note(r)
		switch f {
		case busy:
			send(w, 429, status(429, "TooManyRequests"))
			return
		case race:
			send(w, 409, status(409, "Conflict"))
			return
		case none:
			pass.ServeHTTP(w, r)
			return
		case loseAnswer, dieAfter:
			pass.ServeHTTP(httptest.NewRecorder(), r)
		}
		if f == dieBefore || f == dieAfter {
			p.died()
		}
		panic(http.ErrAbortHandler)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	p.path = kubeconfig(t, s.URL)
	return p
}

func (p *proxy) count(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running += more
}

// idle waits until no request is being answered.
func (p *proxy) idle(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.running > 0 {
			return fmt.Errorf("%d requests are being answered", p.running)
		}
		return nil
	})
}

func (p *proxy) note(r *http.Request) fault {
	body, _ := io.ReadAll(r.Body)
	_ = r.Body.Close()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.Method+" "+r.URL.RequestURI())
	if p.dead {
		return refuse
	}
	if p.fault == nil {
		return none
	}
	f := p.fault(len(p.asked), r)
	p.dead = f == dieBefore || f == dieAfter
	return f
}

// requests are those since the last call that f wants.
func (p *proxy) requests(f func(string) bool) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, a := range p.asked {
		if f(a) {
			out = append(out, a)
		}
	}
	p.asked = nil
	return out
}

// breaks has the proxy be at fault from its next request on, counted from one.
func (p *proxy) breaks(f func(n int, r *http.Request) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.fault, p.dead = nil, f, false
}

func every(string) bool { return true }

func writes(request string) bool { return !strings.HasPrefix(request, "GET ") }

func (p *proxy) cluster() clusters.Cluster { return cluster(p.path) }
