package report

import (
	"testing"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
)

func TestCredentialFindings(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		cluster    clusters.Cluster
		credential clusters.Credential
		want       string
	}{
		"Good":       {clusters.Cluster{}, clusters.Credential{Expires: at.Add(365 * 24 * time.Hour), Skew: 2 * time.Second}, ""},
		"Insecure":   {clusters.Cluster{}, clusters.Credential{Unverified: true}, "InsecureTLS: the kubeconfig says insecure-skip-tls-verify: whoever stands between can answer for the cluster and take the credential"},
		"EndsSoon":   {clusters.Cluster{}, clusters.Credential{Expires: at.Add(24 * time.Hour)}, "CredentialExpires: the credential ends at 2026-12-02T09:00:00Z"},
		"ShortLife":  {clusters.Cluster{}, clusters.Credential{Issued: at.Add(-time.Hour), Expires: at.Add(23 * time.Hour)}, ""},
		"ShortEnds":  {clusters.Cluster{}, clusters.Credential{Issued: at.Add(-20 * time.Hour), Expires: at.Add(4 * time.Hour)}, "CredentialExpires: the credential ends at 2026-12-01T13:00:00Z"},
		"Ahead":      {clusters.Cluster{}, clusters.Credential{Skew: 2 * time.Hour}, "ClockSkew: the clock of the API server is 2h0m0s ahead of ours"},
		"Behind":     {clusters.Cluster{}, clusters.Credential{Skew: -2 * time.Hour}, "ClockSkew: the clock of the API server is 2h0m0s behind ours"},
		"MayRoll":    {clusters.Cluster{}, clusters.Credential{Powers: []string{"roll"}, Because: []string{"delete pods"}}, "CredentialCanWrite: the credential may delete pods, and the policy allows no roll"},
		"Allowed":    {clusters.Cluster{Policy: clusters.Policy{May: []string{"roll"}}}, clusters.Credential{Powers: []string{"roll"}}, ""},
		"Admin":      {clusters.Cluster{Policy: clusters.Policy{May: []string{"roll"}}}, clusters.Credential{Powers: []string{"roll", "apply"}, Administrator: true}, "CredentialCanWrite: the credential is an administrator's, and the policy allows no apply"},
		"AnotherOne": {clusters.Cluster{Registered: clusters.Registered{Identity: "old"}}, clusters.Credential{}, "IdentityChanged: the UID of kube-system is new, and was old when the cluster was registered: another cluster answers, or it was built anew"},
		"TheSame":    {clusters.Cluster{Registered: clusters.Registered{Identity: "new"}}, clusters.Credential{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cluster.Name = "c"
			c := NewCluster(Judged{Cluster: tc.cluster, Live: clusters.Live{ObservedAt: at, Identity: "new", Credential: tc.credential}}, func(coverage.State) bool { return true })
			got := ""
			for _, f := range c.findings {
				got += f.Code + ": " + f.Message
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
