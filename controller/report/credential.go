package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/controller/coverage"
)

const (
	// expiresSoon is how long before its end a credential is a finding; of one that
	// is made for less, the last fifth, since somebody renews it.
	expiresSoon = 14 * 24 * time.Hour

	// muchSkew is from where on ages and graces are judged wrongly.
	muchSkew = time.Minute
)

// credentialFindings are what is odd about the way to a cluster, or about which
// cluster it leads to.
func credentialFindings(j Judged) []Finding {
	var out []Finding
	say := func(code, key, format string, args ...any) {
		out = append(out, NewFinding(j.Cluster.Name, code, fmt.Sprintf(format, args...), coverage.Cause{Kind: "observation", Key: j.Cluster.Name + " " + key}))
	}
	c := j.Live.Credential
	if c.Unverified {
		say("InsecureTLS", "certificate", "the kubeconfig says insecure-skip-tls-verify: whoever stands between can answer for the cluster and take the credential")
	}
	soon := expiresSoon
	if !c.Issued.IsZero() {
		soon = min(soon, c.Expires.Sub(c.Issued)/5)
	}
	if !c.Expires.IsZero() && c.Expires.Before(j.Live.ObservedAt.Add(soon)) {
		say("CredentialExpires", "end", "the credential ends at %s", c.Expires.UTC().Format(time.RFC3339))
	}
	if c.Skew.Abs() > muchSkew {
		say("ClockSkew", "clock", "the clock of the API server is %s", skewText(c.Skew))
	}
	if extra := beyond(c.Powers, j.Cluster.Policy.May); len(extra) > 0 {
		who := "the credential may " + strings.Join(c.Because, ", ")
		if c.Administrator {
			who = "the credential is an administrator's"
		}
		say("CredentialCanWrite", "powers", "%s, and the policy allows no %s", who, strings.Join(extra, ", "))
	}
	if was, is := j.Cluster.Registered.Identity, j.Live.Identity; was != "" && is != "" && was != is {
		say("IdentityChanged", "identity", "the UID of kube-system is %s, and was %s when the cluster was registered: another cluster answers, or it was built anew", is, was)
	}
	return out
}

// beyond are the powers that a credential has and a policy does not give.
func beyond(powers, may []string) []string {
	return slices.DeleteFunc(slices.Clone(powers), func(p string) bool { return slices.Contains(may, p) })
}

func skewText(d time.Duration) string {
	way := "ahead of ours"
	if d < 0 {
		way = "behind ours"
	}
	return d.Abs().Round(time.Second).String() + " " + way
}
