package kube

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall.dev/rollcall/clusters"
)

// TestHandshakeTimeout is of a server that takes connections and is silent for
// longer than the library waits for TLS, and not as long as the deadline.
func TestHandshakeTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &session{host: "silent", limit: time.Minute}
	client := &http.Client{Transport: &bounded{base: &http.Transport{TLSHandshakeTimeout: 200 * time.Millisecond}, session: s, perAnswer: 1, budget: &budget{limit: 1}}}
	_, err = client.Get("https://" + l.Addr().String())
	state, err := s.judge(t.Context(), access{}, err)
	if state != clusters.Unreachable || err == nil || !strings.HasPrefix(err.Error(), `"silent" took the connection but did not begin TLS within 200ms`) {
		t.Errorf("a silent server is %s: %v", state, err)
	}
}
