package hub

import (
	"net/netip"
	"strings"
	"testing"

	"rollcall.dev/rollcall/clusters"
)

// Where a Secret may not send us, as text.
func TestCheckServer(t *testing.T) {
	hubs := []string{"hub.example:6443", "10.1.1.1:6443"}
	cases := map[string]struct{ usual, allowed string }{ // words of the refusal, empty for none: by default, and with loopback allowed
		"https://api.example":                      {},
		"https://api.example:6443/k8s/clusters/c1": {},
		"https://10.0.0.1:6443":                    {},
		"https://[2001:db8::1]:6443":               {},
		"https://hub.example:443":                  {},
		"":                                         {"missing", "missing"},
		"http://api.example":                       {"must be https", "must be https"},
		"api.example:6443":                         {"must be a URL", "must be a URL"},
		"https://":                                 {"must be a URL", "must be a URL"},
		"https://a b":                              {"must be a URL", "must be a URL"},
		"https://me:CANARY@api.example":            {"must not hold a user", "must not hold a user"},
		"https://api.example?x=CANARY":             {"must not hold", "must not hold"},
		"https://api.example/#CANARY":              {"must not hold", "must not hold"},
		"https://127.0.0.1:6443":                   {"a loopback address", ""},
		"https://127.9.9.9":                        {"a loopback address", ""},
		"https://[::1]:6443":                       {"a loopback address", ""},
		"https://[::ffff:127.0.0.1]":               {"a loopback address", ""},
		"https://[64:ff9b::7f00:1]":                {"a loopback address", ""},
		"https://localhost:6443":                   {"a loopback address", ""},
		"https://LOCALHOST.":                       {"a loopback address", ""},
		"https://a.localhost":                      {"a loopback address", ""},
		"https://169.254.169.254":                  {"link-local", "link-local"},
		"https://[::ffff:169.254.169.254]":         {"link-local", "link-local"},
		"https://[fe80::1%25eth0]:6443":            {"link-local", "link-local"},
		"https://[fd00:ec2::254]":                  {"metadata", "metadata"},
		"https://100.100.100.200":                  {"metadata", "metadata"},
		"https://metadata.google.internal.":        {"metadata", "metadata"},
		"https://0.0.0.0:6443":                     {"unspecified", "unspecified"},
		"https://[::]:6443":                        {"unspecified", "unspecified"},
		"https://224.0.0.1":                        {"no address of one machine", "no address of one machine"},
		"https://127.1:6443":                       {"its usual form", "its usual form"},
		"https://2130706433":                       {"its usual form", "its usual form"},
		"https://ｌocalhost":                        {"its usual form", "its usual form"}, // which clients make localhost of
		"https://①②⑦.⓪.⓪.①":                        {"its usual form", "its usual form"},
		"https://0x7f.0.0.0x1":                     {"its usual form", "its usual form"},
		"https://hub.example:6443":                 {"the hub's own API server", ""},
		"https://HUB.example.:6443/":               {"the hub's own API server", ""},
		"https://10.1.1.1:6443":                    {"the hub's own API server", ""},
		"https://kubernetes.default.svc":           {"the hub's own API server", ""},
	}
	for server, want := range cases {
		for _, allow := range []bool{false, true} {
			got, words := checkServer(server, clusters.Inline{AllowLoopback: allow, Hub: hubs}), want.usual
			if allow {
				words = want.allowed
			}
			if (got == "") != (words == "") || !strings.Contains(got, words) || strings.Contains(got, "CANARY") {
				t.Errorf("%q, allowed %v: got %q, want %q", server, allow, got, words)
			}
		}
	}
}

// And after a name was resolved: what the name said does not count.
func TestRefused(t *testing.T) {
	in := clusters.Inline{Hub: []string{"hub.example:6443", "10.1.1.1:6443"}}
	cases := map[string]string{
		"192.168.1.1:443": "", "[2001:db8::1]:6443": "", "10.1.1.1:443": "", "10.1.1.1:6443": "hub's own", "[::ffff:10.1.1.1]:6443": "hub's own",
		"127.0.0.1:6443": "loopback", "[::1]:6443": "loopback", "169.254.169.254:80": "link-local", "[fe80::1%eth0]:443": "link-local",
		"0.0.0.0:1": "unspecified", "0.1.2.3:1": "unspecified", "255.255.255.255:1": "no address of one", "[ff02::1]:1": "no address of one", "[fd20:ce::254]:80": "metadata",
	}
	for to, want := range cases {
		got := Refused(netip.MustParseAddrPort(to), in)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", to, got, want)
		}
	}
}
