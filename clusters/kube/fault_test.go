package kube_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd/api"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/kube"
)

// fake answers as an API server without objects does, except where answer does.
func fake(t *testing.T, answer func(http.ResponseWriter, *http.Request) bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer != nil && answer(w, r) {
			return
		}
		kinds := map[string]string{
			"daemonsets": "DaemonSetList apps/v1", "controllerrevisions": "ControllerRevisionList apps/v1",
			"pods": "PodList v1", "nodes": "NodeList v1", "events": "EventList v1",
		}
		last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		switch {
		case last == "version":
			send(w, 200, `{"gitVersion":"v1.37.2"}`)
		case last == "kube-system":
			send(w, 200, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"the-uid"}}`)
		default:
			kind, version, _ := strings.Cut(kinds[last], " ")
			send(w, 200, list(kind, version, `"resourceVersion":"1"`))
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// daemonSets answers requests for DaemonSets only.
func daemonSets(f http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/daemonsets") {
			return false
		}
		f(w, r)
		return true
	}
}

func list(kind, version, metadata string, items ...string) string {
	return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{%s},"items":[%s]}`, kind, version, metadata, strings.Join(items, ","))
}

func send(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

func status(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
}

// A server that answers wrongly is Failed: never a cluster without DaemonSets.
func TestWrongAnswers(t *testing.T) {
	page := func(next string) string {
		return list("DaemonSetList", "apps/v1", fmt.Sprintf(`"resourceVersion":"1","continue":%q`, next))
	}
	var count atomic.Int64
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		state  clusters.ObserveState
		words  []string
	}{
		"Null": {"client-go makes an empty list of it", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, `null`) }, clusters.Failed, []string{"listing daemonsets", "Kind"}},
		"PodList": {"an empty list of another kind", func(w http.ResponseWriter, _ *http.Request) {
			send(w, 200, list("PodList", "v1", `"resourceVersion":"5"`))
		}, clusters.Failed, []string{"PodList instead of a DaemonSetList"}},
		"OtherVersion": {"a kind that is not known", func(w http.ResponseWriter, _ *http.Request) {
			send(w, 200, list("DaemonSetList", "apps/v9", `"resourceVersion":"5"`))
		}, clusters.Failed, []string{"DaemonSetList"}},
		"ProxyJSON":         {"a login page of a proxy", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, `{"error":"login required"}`) }, clusters.Failed, []string{"Kind"}},
		"StatusAsSuccess":   {"an error in a 200", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, status(403, "Forbidden")) }, clusters.Failed, []string{"Status instead of"}},
		"NoResourceVersion": {"an object that no API server made", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, list("DaemonSetList", "apps/v1", "")) }, clusters.Failed, []string{"no resourceVersion"}},
		"HTML": {"not even parsed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>please log in</html>")
		}, clusters.Failed, []string{`"text/html"`}},
		"Truncated":       {"half an answer", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, list("DaemonSetList", "apps/v1", "")[:30]) }, clusters.Failed, []string{"reading the answer"}},
		"SameToken":       {"a list that turns in a circle", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, page("forever")) }, clusters.Failed, []string{"a continue token came twice"}},
		"NewTokenForEver": {"a list without end", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, page(strconv.FormatInt(count.Add(1), 10))) }, clusters.Failed, []string{"more than 20 pages"}},
		"AlwaysExpired": {"every second page is gone", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("continue") != "" {
				send(w, 410, status(410, "Expired"))
				return
			}
			send(w, 200, page("next"))
		}, clusters.Failed, []string{"expired twice"}},
		"GzipBomb": {"a small answer that unpacks to a large one", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(bytes.Repeat([]byte(" "), 3<<20))
			_ = z.Close()
		}, clusters.Failed, []string{"larger than 2 MiB"}},
		"ComeBackInAnHour": {"the answer is no, not a wait", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			send(w, 429, status(429, "TooManyRequests"))
		}, clusters.Failed, []string{"come back later"}},
		"ServerError":  {"a broken server", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", 500) }, clusters.Failed, []string{"boom"}},
		"Unauthorized": {"credentials that have expired", func(w http.ResponseWriter, _ *http.Request) { send(w, 401, status(401, "Unauthorized")) }, clusters.Denied, []string{"kubectl auth whoami --kubeconfig "}},
		"NotFound":     {"an API server without DaemonSets", func(w http.ResponseWriter, _ *http.Request) { send(w, 404, status(404, "NotFound")) }, clusters.Failed, []string{"listing daemonsets"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := fake(t, daemonSets(tc.answer))
			s.Start()
			o := &kube.Observer{BodyLimit: 2 << 20, MaxPages: 20, Timeout: 30 * time.Second}
			start := time.Now()
			_, err := o.Observe(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{})
			if err == nil {
				t.Fatalf("%s: got no error", tc.reason)
			}
			wantFault(t, err, tc.state, tc.words...)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s: took %v", tc.reason, took)
			}
		})
	}
}

func TestAnswersTogetherAreBounded(t *testing.T) {
	s := fake(t, daemonSets(func(w http.ResponseWriter, r *http.Request) {
		send(w, 200, list("DaemonSetList", "apps/v1", fmt.Sprintf(`"resourceVersion":"1","continue":"%sx"`, r.URL.Query().Get("continue")))+strings.Repeat(" ", 1000))
	}))
	s.Start()
	o := &kube.Observer{TotalLimit: 10_000}
	_, err := o.Observe(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{})
	wantFault(t, err, clusters.Failed, "larger than 10000 bytes together")
}

// Optional resources may be forbidden or unknown to the server, which blanks
// them. What is merely broken must not look like that.
func TestOptionalResources(t *testing.T) {
	for resource, stage := range map[string]string{
		"controllerrevisions": `listing controllerrevisions in namespace "a"`,
		"events":              `listing events in namespace "a"`,
		"kube-system":         `reading namespaces "kube-system"`,
	} {
		observed := func(code int, reason string) (clusters.Live, error) {
			s := fake(t, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case strings.HasSuffix(r.URL.Path, "/daemonsets"):
					send(w, 200, list("DaemonSetList", "apps/v1", `"resourceVersion":"1"`, `{"metadata":{"namespace":"a","name":"d"}}`, `{"metadata":{"namespace":"b","name":"d"}}`))
				case strings.HasSuffix(r.URL.Path, "/"+resource):
					send(w, code, status(code, reason))
				default:
					return false
				}
				return true
			})
			s.Start()
			return new(kube.Observer).Observe(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{})
		}
		_, err := observed(500, "InternalError")
		wantFault(t, err, clusters.Failed, stage)
		_, err = observed(401, "Unauthorized")
		wantFault(t, err, clusters.Denied, stage)

		blank := resource
		if resource == "kube-system" {
			blank = "namespaces"
		}
		for code, word := range map[int]string{403: "Forbidden", 404: "NotFound"} {
			live, err := observed(code, word)
			if err != nil {
				t.Errorf("%s answered with %d: %v", resource, code, err)
			}
			if reason, ok := live.Lacks(blank); !ok || !strings.HasPrefix(reason, map[int]string{403: "forbidden: ", 404: "not there: "}[code]) || len(live.Blanks) != 1 {
				t.Errorf("%s answered with %d: got blanks %q", resource, code, live.Blanks)
			}
		}
	}
}

func TestExpiredListIsReadOnceMore(t *testing.T) {
	var requests []string
	s := fake(t, daemonSets(func(w http.ResponseWriter, r *http.Request) {
		next := r.URL.Query().Get("continue")
		requests = append(requests, next)
		item := `{"metadata":{"namespace":"a","name":"first"}}`
		switch {
		case next == "" && len(requests) == 1:
			send(w, 200, list("DaemonSetList", "apps/v1", `"resourceVersion":"1","continue":"next"`, item))
		case next != "":
			send(w, 410, status(410, "Expired"))
		default:
			send(w, 200, list("DaemonSetList", "apps/v1", `"resourceVersion":"2"`, item))
		}
	}))
	s.Start()
	live, err := new(kube.Observer).Observe(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{})
	if err != nil {
		t.Fatal(err)
	}
	if len(live.DaemonSets) != 1 || len(requests) != 3 {
		t.Errorf("got %d DaemonSets after the requests %q, want 1 after 3: the first pass is thrown away", len(live.DaemonSets), requests)
	}
}

func TestShortRetryAfterIsObeyed(t *testing.T) {
	var requests atomic.Int64
	s := fake(t, daemonSets(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			send(w, 429, status(429, "TooManyRequests"))
			return
		}
		send(w, 200, list("DaemonSetList", "apps/v1", `"resourceVersion":"1"`))
	}))
	s.Start()
	live, err := new(kube.Observer).Observe(t.Context(), cluster(kubeconfig(t, s.URL)), clusters.Want{})
	if err != nil {
		t.Fatal(err)
	}
	if requests.Load() != 2 || live.Identity != "the-uid" || live.Version != "v1.37.2" {
		t.Errorf("got %d requests, identity %q, version %q", requests.Load(), live.Identity, live.Version)
	}
}

// The token must not reach the host that a server redirects to.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var stolen atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer other.Close()
	s := fake(t, daemonSets(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-token" {
			t.Errorf("got Authorization %q", r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	s.StartTLS()
	path := kubeconfig(t, s.URL, trust(s), func(_ *api.Cluster, u *api.AuthInfo) { u.Token = "the-token" })
	_, err := new(kube.Observer).Observe(t.Context(), cluster(path), clusters.Want{})
	wantFault(t, err, clusters.Failed, "redirects")
	if stolen.Load() != 0 {
		t.Error("the redirect was followed")
	}
	if strings.Contains(err.Error(), "the-token") {
		t.Errorf("the token is in %q", err)
	}
}

func trust(s *httptest.Server) func(*api.Cluster, *api.AuthInfo) {
	return func(c *api.Cluster, _ *api.AuthInfo) {
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
}

// Each way of not being reached has words of its own.
func TestUnreachable(t *testing.T) {
	// A handler that returned would answer with nothing, which can overtake the
	// end of the request on the way.
	hang := func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	}
	secure := func(answer func(http.ResponseWriter, *http.Request) bool) *httptest.Server {
		s := fake(t, answer)
		s.StartTLS()
		return s
	}
	good := secure(nil)
	expired := fake(t, nil)
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{expiredCertificate(t)}}
	expired.StartTLS()
	plainHTTP := fake(t, nil)
	plainHTTP.Start()

	cases := map[string]struct {
		server string
		change func(*api.Cluster, *api.AuthInfo)
		words  []string
	}{
		"Refused":        {"https://" + closedPort(t), nil, []string{"refuses connections"}},
		"Blackhole":      {"https://" + blackhole(t), nil, []string{"no connection to", "firewall"}},
		"SilentTLS":      {"https://" + silent(t), nil, []string{"did not begin TLS within 1"}},
		"SilentAnswer":   {secure(daemonSets(hang)).URL, nil, []string{"listing daemonsets", "took the request but did not answer"}},
		"DrippingAnswer": {secure(daemonSets(drip)).URL, nil, []string{"listing daemonsets", "began to answer but did not finish"}},
		"UnknownName":    {"https://no-such-host.invalid", nil, []string{`"no-such-host.invalid" does not resolve`}},
		"WrongAuthority": {good.URL, trust(expired), []string{"not signed by the certificate-authority"}},
		"WrongName":      {good.URL, func(c *api.Cluster, _ *api.AuthInfo) { c.TLSServerName = "other.example" }, []string{"for another name", "tls-server-name"}},
		"Expired":        {expired.URL, trust(expired), []string{"has expired"}},
		"NoTLS":          {strings.Replace(plainHTTP.URL, "http:", "https:", 1), nil, []string{"does not speak TLS"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := []func(*api.Cluster, *api.AuthInfo){trust(good)}
			if tc.change != nil {
				change = append(change, tc.change)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			o := &kube.Observer{}
			start := time.Now()
			_, err := o.Observe(ctx, cluster(kubeconfig(t, tc.server, change...)), clusters.Want{})
			took := time.Since(start)
			wantFault(t, err, clusters.Unreachable, tc.words...)
			if took > 3*time.Second {
				t.Errorf("took %v, want no more than the deadline and the slack", took)
			}
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := fake(t, daemonSets(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}))
	s.Start()
	_, err := new(kube.Observer).Observe(ctx, cluster(kubeconfig(t, s.URL)), clusters.Want{})
	wantFault(t, err, clusters.Unreachable, "interrupted")
}

// closedPort is an address on which nothing listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// silent takes connections and never says anything.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// blackhole drops packets: a socket whose queue of connections is full.
func blackhole(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 10 {
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue of connections does not fill")
	return ""
}

func expiredCertificate(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "expired"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
