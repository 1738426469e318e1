package clusters

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollcall.dev/rollcall/sync/schedule"
)

var ignoreCompiled = cmp.Options{
	cmpopts.IgnoreFields(Selection{}, "compiled"),
	cmpopts.IgnoreFields(Agent{}, "daemonSets", "nodes"),
	cmpopts.IgnoreFields(Exclude{}, "labels"),
}

const (
	fleetHead   = "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: p}\nspec:\n"
	sourceHead  = fleetHead + "  source:\n    url: /srv/git\n"
	sshHead     = fleetHead + "  source:\n    url: git@git.example:platform/daemons.git\n"
	webHead     = fleetHead + "  source:\n    url: https://git.example/daemons\n"
	clusterHead = "apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: c}\nspec:\n"
)

func TestParseFleetFull(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseFleet("full.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	labels := func(kv ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(kv); i += 2 {
			s.MatchLabels[kv[i]] = kv[i+1]
		}
		return s
	}
	production := labels("env", "prod")
	production.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"eu", "us"}}}
	want := Fleet{
		Name: "platform",
		Source: &Source{
			URL: "https://git.example/platform/daemons.git", Ref: Ref{Semver: ">=1.2.0 <2.0.0"}, Path: "fleet", Poll: "@every 2m", TimeZone: "Europe/Berlin",
			Auth: Auth{
				CAFile: "ca.crt", CertFile: "client.crt", KeyFile: "client.key",
				GitHubApp: &GitHubApp{AppID: 12, InstallationID: 345, KeyFile: "app.pem", APIURL: "https://git.example/api/v3"},
			},
			Verify: &Verify{Object: "tag", AllowedSignersFile: "allowed_signers", OpenPGPKeysFile: "keys.asc"},
		},
		Directory: "registered",
		Targets: []Target{
			{Name: "production", Clusters: Selection{Selector: production}, Overlay: "overlays/prod-${cluster.labels.region}", Namespace: "daemons"},
			{Name: "rest", Overlay: "base"},
		},
		Components: []Component{{Clusters: Selection{Names: []string{"edge-7"}, Selector: labels("provider", "aws")}, Path: "components/aws"}},
		Agents: []Agent{
			{Name: "falco", Match: labels("app", "falco"), Nodes: labels("kubernetes.io/os", "linux"), Min: "99.5%", Severity: "warning", Severities: map[string]string{"ImagePullBackOff": "error", "NodeNotReady": "info"}, StartupGrace: 10 * time.Minute},
			{Name: "proxy", Names: []string{"kube-system/kube-proxy"}, Min: "100%", Severity: "error", StartupGrace: 7 * time.Minute},
		},
		Exceptions: []Exception{
			{Agent: "falco", Clusters: Selection{Names: []string{"edge-7"}}, Nodes: []string{"n12"}, Reason: "RMA 4711", Owner: "sre", Until: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)},
			{Code: "NodeNotReady", Reason: "lab", Owner: "lab", Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
		},
		Taints: Taints{Lifecycle: []string{"example.com/repair"}, Startup: []string{"readiness.k8s.io/*"}, Leaving: []string{"example.com/drain"}},
		Exclude: []Exclude{
			{Names: []string{"kube-system/*", "lab-?/node-exporter"}},
			{Match: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "lab"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "old", Operator: metav1.LabelSelectorOpExists}}}},
		},
		AppliedBy: []string{"argocd-controller"},
		Policy: Policy{
			May: []string{"roll", "apply"}, Observe: "0 * * * *",
			Windows:      []Window{{Allow: "0 22 * * *", For: 4 * time.Hour, TimeZone: "Europe/Berlin", LastStart: 30 * time.Minute}},
			StartupGrace: 7 * time.Minute, ProgressDeadline: 15 * time.Minute, StaleAfter: 20 * time.Minute, MaxDeletes: "3", Force: "fields",
		},
		Rollout: &Rollout{
			Waves: []Wave{
				{Name: "canary", Clusters: Selection{Selector: labels("env", "dev")}, Size: "2", Soak: 30 * time.Minute, Gate: Gate{Covered: "99.5%", UpToDate: "95%"}},
				{Name: "rest", Size: "100%", Gate: Gate{Covered: "100%", UpToDate: "100%"}},
			},
			Resume: "0123456789abcdef0123456789abcdef01234567",
		},
		Approvals: []Approval{{Commit: "0123456789abcdef0123456789abcdef01234567", Clusters: []string{"prod-eu", "edge-7"}, Allow: []string{"prune", "resume"}}},
	}
	if diff := cmp.Diff(want, got, ignoreCompiled); diff != "" {
		t.Errorf("ParseFleet: -want +got:\n%s", diff)
	}
	if !got.Targets[0].Clusters.Matches("x", map[string]string{"env": "prod", "region": "eu"}) {
		t.Error("the first target does not match a cluster of its labels")
	}
	if got.Agents[0].daemonSets == nil || got.Agents[0].nodes == nil || got.Agents[1].nodes != nil || got.Exclude[1].labels == nil {
		t.Errorf("selectors are not compiled: %+v, %+v", got.Agents, got.Exclude)
	}
}

func TestParseFleetDefaults(t *testing.T) {
	got, err := ParseFleet("f.yaml", []byte(sourceHead))
	if err != nil {
		t.Fatal(err)
	}
	want := Fleet{
		Name:      "p",
		Source:    &Source{URL: "/srv/git", Path: ".", Poll: "@every 1m", TimeZone: "UTC"},
		Directory: "clusters",
		Policy:    Policy{Observe: "*/5 * * * *", StartupGrace: 5 * time.Minute, ProgressDeadline: 10 * time.Minute, StaleAfter: 15 * time.Minute, MaxDeletes: "10%", Force: "never"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ParseFleet: -want +got:\n%s", diff)
	}
}

func TestParseFleetForms(t *testing.T) {
	cases := map[string]struct{ reason, in string }{
		"NoSource":       {"without a source what is live is judged", fleetHead + "  policy: {}\n"},
		"JSON":           {"JSON is YAML", `{"apiVersion":"rollcall.dev/v1alpha1","kind":"Fleet","metadata":{"name":"p"},"spec":{"source":{"url":"/r"}}}`},
		"ByteOrderMark":  {"some editors write one", "\ufeff" + sourceHead},
		"CRLF":           {"some editors write these", strings.ReplaceAll(sourceHead, "\n", "\r\n")},
		"NullIsAbsent":   {"a key with nothing behind it", sourceHead + "    auth:\n    ref:\n  targets:\n"},
		"EmptySpec":      {"all of it is optional", "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\nmetadata: {name: p}\n"},
		"LastSeparator":  {"a file may end in one", sourceHead + "---\n"},
		"SSH":            {"a key and who the server is", strings.Replace(sourceHead, "/srv/git", "ssh://git@git.example/r.git", 1) + "    auth: {ssh: {keyFile: k, passphraseFile: p, knownHostsFile: h}}\n"},
		"SCP":            {"the agent's key", sshHead + "    auth: {ssh: {agent: true, knownHostsFile: h}}\n"},
		"Basic":          {"a password by file", webHead + "    auth: {username: reader, passwordFile: p}\n"},
		"BranchOfCommit": {"where to look for it", sourceHead + "    ref: {branch: main, commit: a123456789012345678901234567890123456789}\n"},
		"FullName":       {"any ref", sourceHead + "    ref: {name: refs/pull/12/head}\n"},
		"MatchAllLabels": {"an empty selector is any label", sourceHead + "  targets:\n  - {name: a, clusters: {matchLabels: {}}, overlay: o}\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if f, err := ParseFleet("f.yaml", []byte(tc.in)); err != nil || f.Name != "p" {
				t.Errorf("%s: ParseFleet: %v", tc.reason, err)
			}
		})
	}
}

func TestParseFleetFaults(t *testing.T) {
	target := func(rest string) string { return sourceHead + "  targets:\n  - {name: a, " + rest + "}\n" }
	agent := func(rest string) string { return fleetHead + "  agents:\n  - {name: a, clusters: {}, " + rest + "}\n" }
	exception := func(rest string) string { return fleetHead + "  exceptions:\n  - {clusters: {}, " + rest + "}\n" }
	exclude := func(rule string) string { return fleetHead + "  daemonSets: {exclude: [\n  " + rule + "]}\n" }
	excludeFault := func(i int, name string) string {
		return fmt.Sprintf("f.yaml:6: spec.daemonSets.exclude[0].names[%d]: Invalid value: %q: must be namespace/name of DaemonSets, either of them may be a pattern such as kube-*\n", i, name)
	}
	leastFault := func(text string) string {
		return fmt.Sprintf("f.yaml:6: spec.agents[0].min: Invalid value: %q: must be a number of nodes or a percentage of them, more than 0 and at most 100%%, such as 3 or 99.5%%", text)
	}
	policy := func(rest string) string { return fleetHead + "  policy: {" + rest + "}\n" }
	url := func(u string) string { return fleetHead + "  source: {url: '" + u + "'}\n" }
	const login = "f.yaml:5: spec.source.url: Invalid value: must not hold a credential: name a file that holds it in auth.tokenFile or auth.passwordFile"
	dns := `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	cases := map[string]struct {
		reason string
		in     string
		want   string
	}{
		"Empty":          {"nothing is no fleet", "", "f.yaml:1: the file is empty"},
		"NotUTF8":        {"text in another encoding", "apiVersion: x\nkind: \xff\n", "f.yaml:2: the file is not UTF-8 text"},
		"Syntax":         {"the parser's line is kept", "a: b\nc: d: e\n", "f.yaml:2: mapping values are not allowed in this context"},
		"NoMapping":      {"a list is no fleet", "- a\n", "f.yaml:1: must be a mapping, is a list"},
		"SecondDocument": {"which one would count?", sourceHead + "---\na: b\n", "f.yaml:8: a second document: one file holds one"},
		"OtherKind":      {"its other fields are not judged", "apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nspec: {recorded: x}\n", `f.yaml:2: kind: Unsupported value: "Cluster": supported values: "Fleet"`},
		"OtherVersion":   {"a newer file", strings.Replace(sourceHead, "v1alpha1", "v2", 1), `f.yaml:1: apiVersion: Unsupported value: "rollcall.dev/v2": supported values: "rollcall.dev/v1alpha1"`},
		"NoKind":         {"both are needed", "apiVersion: rollcall.dev/v1alpha1\nmetadata: {name: p}\n", `f.yaml:1: kind: Required value: must be "Fleet"`},
		"NoName":         {"reports name it", "apiVersion: rollcall.dev/v1alpha1\nkind: Fleet\n", "f.yaml:1: metadata.name: Required value: a name"},
		"BadName":        {"names are DNS names", strings.Replace(sourceHead, "name: p", "name: P_1", 1), `f.yaml:3: metadata.name: Invalid value: "P_1": ` + dns},

		"UnknownField":   {"a slip is told", fleetHead + "  targts: []\n", `f.yaml:5: spec.targts: Forbidden: unknown field, did you mean "targets"?`},
		"UnknownCase":    {"names are case sensitive", fleetHead + "  appliedby: []\n", `f.yaml:5: spec.appliedby: Forbidden: unknown field, did you mean "appliedBy"?`},
		"UnknownFar":     {"nothing is near", fleetHead + "  clusters: {selector: x}\n", `f.yaml:5: spec.clusters.selector: Forbidden: unknown field, known are directory, hub`},
		"UnknownControl": {"names are shown escaped", fleetHead + `  "a\e[31m": 1` + "\n", `f.yaml:5: spec."a\x1b[31m": Forbidden: unknown field, known are agents, appliedBy, approvals, clusters, components, daemonSets, drift, exceptions, policy, rollout, source, taints, targets`},
		"DuplicateKey":   {"which one would count?", sourceHead + "  targets: []\n  targets: []\n", "f.yaml:8: spec.targets: Forbidden: duplicate key, first on line 7"},
		"MergeKey":       {"no part of the schema", fleetHead + "  <<: {policy: {}}\n", "f.yaml:5: spec.<<: Forbidden: merge keys are not accepted here: write the fields out"},
		"Alias":          {"bombs are made of them", fleetHead + "  appliedBy: &a [x]\n  taints: {startup: *a}\n", "f.yaml:5: spec.appliedBy: Invalid value: anchors and aliases are not accepted here: write the value out\nf.yaml:6: spec.taints.startup: Invalid value: anchors and aliases are not accepted here: write the value out"},
		"NumberKeyTop":   {"keys are text", sourceHead + "1: x\n", "f.yaml:7: the file: Invalid value: has a key that is not text, but a number"},
		"BlockLine":      {"the line of the key", sourceHead + "  targets:\n    a: b\n", "f.yaml:7: spec.targets: Invalid value: must be a list, is a mapping"},
		"NumberKey":      {"keys are text", fleetHead + "  1: x\n", "f.yaml:5: spec: Invalid value: has a key that is not text, but a number"},
		"WrongTypes":     {"all at once, values unshown", fleetHead + "  source: CANARY\n  targets: {a: b}\n  appliedBy: [[x], 1, true, null]\n", "f.yaml:5: spec.source: Invalid value: must be a mapping, is text\nf.yaml:6: spec.targets: Invalid value: must be a list, is a mapping\nf.yaml:7: spec.appliedBy[0]: Invalid value: must be text, is a list\nf.yaml:7: spec.appliedBy[1]: Invalid value: must be text, is a number: put it in quotes\nf.yaml:7: spec.appliedBy[2]: Invalid value: must be text, is true or false: put it in quotes\nf.yaml:7: spec.appliedBy[3]: Invalid value: must not be empty"},
		"BranchIsNumber": {"1.10 would become 1.1", sourceHead + "    ref: {branch: 1.10}\n", "f.yaml:7: spec.source.ref.branch: Invalid value: must be text, is a number: put it in quotes"},
		"CustomTag":      {"tags of one's own", sourceHead + "    path: !x y\n", "f.yaml:7: spec.source.path: Invalid value: must be text, is of a tag of its own: put it in quotes"},
		"EveryFaultAtOnce": {"in the order of the file", sourceHead + "  targets:\n  - name: a\n    overlay: /eu\n  - name: a\n    clusters: {}\n    overlay: x\n  policy: {may: [fly]}\n",
			"f.yaml:8: spec.targets[0].clusters: Required value: write {} for all clusters\nf.yaml:9: spec.targets[0].overlay: Invalid value: \"/eu\": must be relative to the root inside the repository\nf.yaml:10: spec.targets[1].name: Duplicate value: \"a\"\nf.yaml:13: spec.policy.may[0]: Unsupported value: \"fly\": supported values: \"roll\", \"apply\", \"prune\", \"manage\""},

		"NoURL":           {"a source needs one", fleetHead + "  source: {}\n", "f.yaml:5: spec.source.url: Invalid value: must be the URL or path of a Git repository"},
		"PasswordInURL":   {"not repeated", url("https://u:CANARY@git.example/r"), login},
		"TokenInURL":      {"a user name may be one", url("https://CANARY@git.example/r"), login},
		"TokenInQuery":    {"likewise", url("https://git.example/r?private_token=CANARY"), login},
		"PasswordInSSH":   {"likewise", url("ssh://git:CANARY@git.example/r"), login},
		"PasswordInSCP":   {"likewise", url("u:CANARY@git.example:r"), login},
		"MalformedURL":    {"the parser's error would repeat it", url("https://u:CANARY@git.example:x%zz/r"), "f.yaml:5: spec.source.url: Invalid value: must be a URL"},
		"OptionAsURL":     {"git would take it as an option", url("--upload-pack=x"), "f.yaml:5: spec.source.url: Invalid value: must not start with -, name a remote helper (::) or hold control characters"},
		"HelperURL":       {"git would run it", url("ext::sh -c x"), "f.yaml:5: spec.source.url: Invalid value: must not start with -, name a remote helper (::) or hold control characters"},
		"SchemeOfURL":     {"unknown", url("ftp://git.example/r"), "f.yaml:5: spec.source.url: Invalid value: must be https, http, ssh, file or a path"},
		"HostOfURL":       {"none", url("https:///r"), "f.yaml:5: spec.source.url: Invalid value: must name a host"},
		"TwoRefs":         {"which one would count?", sourceHead + "    ref: {branch: a, tag: b}\n", "f.yaml:7: spec.source.ref: Forbidden: at most one of branch, tag, semver, name and commit; only a commit may have its branch beside it"},
		"ShortCommit":     {"ambiguous one day", sourceHead + "    ref: {commit: abc1234}\n", `f.yaml:7: spec.source.ref.commit: Invalid value: "abc1234": must be 40 lower-case hexadecimal digits`},
		"FullRefName":     {"it would be prefixed twice", sourceHead + "    ref: {branch: refs/heads/main}\n", `f.yaml:7: spec.source.ref.branch: Invalid value: "refs/heads/main": must be the short name, without refs/heads/ or refs/tags/; a full name goes into ref.name`},
		"BadRefName":      {"git would not have it", sourceHead + "    ref: {tag: 'a..b'}\n", `f.yaml:7: spec.source.ref.tag: Invalid value: "a..b": must be a name that Git accepts`},
		"Semver":          {"a range, checked when loaded", sourceHead + "    ref: {semver: latest please}\n", `f.yaml:7: spec.source.ref.semver: Invalid value: "latest please": must be a range of versions such as ">=1.2.0 <2.0.0", "~1.4" or "1.x"`},
		"Verify":          {"whose signature?", sourceHead + "    verify: {object: commit}\n", "f.yaml:7: spec.source.verify: Required value: name allowedSignersFile (SSH signatures, as git config gpg.ssh.allowedSignersFile) or openPGPKeysFile (armored public keys), or both"},
		"VerifyTag":       {"a branch has no tag", sourceHead + "    ref: {branch: b}\n    verify: {object: tag, openPGPKeysFile: k}\n", `f.yaml:8: spec.source.verify.object: Invalid value: "tag": needs a ref that is a tag or a semver range`},
		"VerifyList":      {"never ignored in silence", sourceHead + "    verify: [k]\n", "f.yaml:7: spec.source.verify: Invalid value: must be a mapping, is a list"},
		"AuthSSH":         {"where it belongs", sourceHead + "    auth: {sshKeyFile: k}\n", "f.yaml:7: spec.source.auth.sshKeyFile: Forbidden: unknown field, write ssh: {keyFile: FILE, knownHostsFile: FILE}"},
		"AuthToken":       {"not repeated", sourceHead + "    auth: {token: CANARY}\n", "f.yaml:7: spec.source.auth.token: Forbidden: a secret is never written here: name a file that holds it in tokenFile"},
		"AuthText":        {"not repeated", sourceHead + "    auth: CANARY\n", "f.yaml:7: spec.source.auth: Invalid value: must be a mapping, is text"},
		"AuthTwice":       {"which one would count?", sourceHead + "    auth: {tokenFile: a, username: b, passwordFile: c}\n", "f.yaml:7: spec.source.auth: Forbidden: either tokenFile, or username and passwordFile\nf.yaml:7: spec.source.auth: Forbidden: a local repository needs no login"},
		"SSHNoKnownHosts": {"mandatory", sshHead + "    auth: {ssh: {agent: true}}\n", "f.yaml:7: spec.source.auth.ssh.knownHostsFile: Required value: without it any server could pass for this one; make it with ssh-keyscan HOST and compare the fingerprint with the one that the server's operator publishes"},
		"SSHNothing":      {"nothing is guessed", sshHead, "f.yaml:5: spec.source.auth.ssh: Required value: an ssh URL needs ssh: {keyFile: FILE, knownHostsFile: FILE}, or agent: true in place of the key"},
		"SSHTwice":        {"which one would count?", sshHead + "    auth: {ssh: {agent: true, keyFile: k, knownHostsFile: h}}\n", "f.yaml:7: spec.source.auth.ssh: Forbidden: either keyFile or agent"},
		"SSHWithToken":    {"ssh knows no token", sshHead + "    auth: {tokenFile: t, ssh: {agent: true, knownHostsFile: h}}\n", "f.yaml:7: spec.source.auth: Forbidden: an ssh URL takes ssh: {keyFile, knownHostsFile} and nothing else"},
		"SSHForWeb":       {"https knows no ssh key", sourceHead + "    auth: {ssh: {agent: true, knownHostsFile: h}}\n", "f.yaml:7: spec.source.auth.ssh: Forbidden: the URL is not an ssh one"},
		"HalfCertificate": {"both or none", webHead + "    auth: {certFile: c}\n", "f.yaml:7: spec.source.auth: Forbidden: a client certificate needs both certFile and keyFile"},
		"AppWithoutKey":   {"all three", webHead + "    auth: {githubApp: {appID: 1, installationID: 2}}\n", "f.yaml:7: spec.source.auth.githubApp.keyFile: Required value: the app's private key, in PEM"},
		"AppAndToken":     {"which one would count?", webHead + "    auth: {tokenFile: t, githubApp: {appID: 1, installationID: 2, keyFile: k}}\n", "f.yaml:7: spec.source.auth: Forbidden: either githubApp, or a token or password"},
		"RefName":         {"a full one", sourceHead + "    ref: {name: main}\n", `f.yaml:7: spec.source.ref.name: Invalid value: "main": must be a full name such as refs/heads/main or refs/pull/12/head`},
		"AuthNoPassword":  {"both or none", sourceHead + "    auth: {username: b}\n", "f.yaml:7: spec.source.auth.passwordFile: Required value: username needs it\nf.yaml:7: spec.source.auth: Forbidden: a local repository needs no login"},
		"AuthNoUser":      {"both or none", sourceHead + "    auth: {passwordFile: b}\n", "f.yaml:7: spec.source.auth.username: Required value: passwordFile needs it\nf.yaml:7: spec.source.auth: Forbidden: a local repository needs no login"},
		"PathLeaves":      {"out of the repository", sourceHead + "    path: ../x\n", `f.yaml:7: spec.source.path: Invalid value: "../x": must not leave the repository`},

		"NoSourceToRender": {"a fleet that lost its source", fleetHead + "  targets:\n  - {name: a, clusters: {}, overlay: o}\n", "f.yaml:5: spec.targets: Forbidden: there is no spec.source to render from"},
		"TargetNull":       {"a dash too many", sourceHead + "  targets:\n  -\n", "f.yaml:8: spec.targets[0]: Invalid value: must not be empty"},
		"TargetNoOverlay":  {"what should be there?", target("clusters: {}"), "f.yaml:8: spec.targets[0].overlay: Required value: a folder of the repository"},
		"OverlayLeaves":    {"in a roundabout way", target("clusters: {}, overlay: a/../../b"), `f.yaml:8: spec.targets[0].overlay: Invalid value: "a/../../b": must not leave the repository`},
		"OverlayRemote":    {"kustomize would fetch it", target("clusters: {}, overlay: 'https://u:CANARY@x/y?ref=z'"), "f.yaml:8: spec.targets[0].overlay: Invalid value: must be a folder of the repository: remote bases are refused"},
		"OverlayBackslash": {"of Windows", target(`clusters: {}, overlay: 'a\b'`), `f.yaml:8: spec.targets[0].overlay: Invalid value: "a\\b": must be written with /`},
		"ClustersNull":     {"null is not {}", target("clusters: , overlay: o"), "f.yaml:8: spec.targets[0].clusters: Required value: write {} for all clusters"},
		"ClustersNoNames":  {"an empty list is not all", target("clusters: {names: []}, overlay: o"), "f.yaml:8: spec.targets[0].clusters.names: Required value: at least one name; {} is all clusters"},
		"ClustersBadName":  {"no cluster has it", target("clusters: {names: [A]}, overlay: o"), `f.yaml:8: spec.targets[0].clusters.names[0]: Invalid value: "A": ` + dns},
		"SelectorOperator": {"not one of the four", target("clusters: {matchExpressions: [{key: a, operator: Is}]}, overlay: o"), `f.yaml:8: spec.targets[0].clusters.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		"SelectorValues":   {"In needs some", target("clusters: {matchExpressions: [{key: a, operator: In}]}, overlay: o"), "f.yaml:8: spec.targets[0].clusters.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		"SelectorBool":     {"labels are text", target("clusters: {matchLabels: {gpu: true}}, overlay: o"), "f.yaml:8: spec.targets[0].clusters.matchLabels[gpu]: Invalid value: must be text, is true or false: put it in quotes"},
		"Namespace":        {"no namespace", target("clusters: {}, overlay: o, namespace: a.b"), `f.yaml:8: spec.targets[0].namespace: Invalid value: "a.b": must not contain dots`},
		"Component":        {"likewise", sourceHead + "  components:\n  - {path: /x}\n", "f.yaml:8: spec.components[0].clusters: Required value: write {} for all clusters\nf.yaml:8: spec.components[0].path: Invalid value: \"/x\": must be relative to the root inside the repository"},

		"AgentTwice":    {"which one would count?", agent("match: {names: [a/b]}") + "  - {name: a, clusters: {}, match: {names: [a/b]}}\n", `f.yaml:7: spec.agents[1].name: Duplicate value: "a"`},
		"AgentNothing":  {"what must be covered?", agent("min: 1"), "f.yaml:6: spec.agents[0].match: Required value: the labels or names of DaemonSets"},
		"AgentBoth":     {"which one would count?", agent("match: {names: [a/b], matchLabels: {x: y}}"), "f.yaml:6: spec.agents[0].match: Forbidden: either names or labels"},
		"AgentNames":    {"a namespace is needed", agent("names: [falco]"), `f.yaml:6: spec.agents[0].names[0]: Invalid value: "falco": must be namespace/name of a DaemonSet`},
		"AgentMin":      {"no number", agent("names: [a/b], min: most"), leastFault("most")},
		"AgentMin101":   {"more than all", agent("names: [a/b], min: 100.000001%"), leastFault("100.000001%")},
		"AgentMin0":     {"nothing is no target", agent("names: [a/b], min: 0"), leastFault("0")},
		"AgentMin0%":    {"likewise", agent("names: [a/b], min: 0.0%"), leastFault("0.0%")},
		"AgentMinHalf":  {"there is no half a node", agent(`names: [a/b], min: "1.5"`), leastFault("1.5")},
		"AgentMinFine":  {"finer than anybody means it", agent("names: [a/b], min: 1.1234567%"), leastFault("1.1234567%")},
		"AgentMinFloat": {"a number that YAML may write otherwise", agent("names: [a/b], min: 1.5"), "f.yaml:6: spec.agents[0].min: Invalid value: must be text, is a number: put it in quotes"},
		"AgentCodes": {"codes and severities alike", agent("names: [a/b], severities: {NodeNotReady: fatal, node-gone: info}"),
			`f.yaml:6: spec.agents[0].severities[NodeNotReady]: Unsupported value: "fatal": supported values: "error", "warning", "info"` + "\n" + `f.yaml:6: spec.agents[0].severities[node-gone]: Invalid value: "node-gone": must be a code such as NodeNotReady`},
		"AgentSeverity": {"not one of the three", agent("names: [a/b], severity: fatal"), `f.yaml:6: spec.agents[0].severity: Unsupported value: "fatal": supported values: "error", "warning", "info"`},
		"AgentGrace":    {"no unit", agent(`names: [a/b], startupGrace: "5"`), `f.yaml:6: spec.agents[0].startupGrace: Invalid value: "5": must be a duration such as 5m`},
		"AgentNodes":    {"no key", agent("names: [a/b], nodes: {matchExpressions: [{key: '', operator: Exists}]}"), `f.yaml:6: spec.agents[0].nodes.matchExpressions[0].key: Invalid value: "": name part must be non-empty` + "\n" + `f.yaml:6: spec.agents[0].nodes.matchExpressions[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},

		"ExcludeElsewhere": {"where it belongs is told", fleetHead + "  exclude: [{names: [a/b]}]\n", "f.yaml:5: spec.exclude: Forbidden: unknown field, write daemonSets: {exclude: [{names: [NAMESPACE/NAME]}]}"},
		"ExcludeNothing":   {"it would exclude everything", exclude("{}"), "f.yaml:6: spec.daemonSets.exclude[0]: Required value: the names or labels of DaemonSets"},
		"ExcludeNoNames":   {"likewise", exclude("{names: [], matchLabels: {}}"), "f.yaml:6: spec.daemonSets.exclude[0]: Required value: the names or labels of DaemonSets"},
		"ExcludeBoth":      {"which one would count?", exclude("{names: [a/b], matchLabels: {x: y}}"), "f.yaml:6: spec.daemonSets.exclude[0]: Forbidden: either names or labels"},
		"ExcludeNames": {"each is told", exclude("{names: [falco, a/b, a/B, '[/x', a/, '*/*/*', 'kube-*/[a-']}"),
			excludeFault(0, "falco") + excludeFault(2, "a/B") + excludeFault(3, "[/x") + excludeFault(4, "a/") + excludeFault(5, "*/*/*") + strings.TrimSuffix(excludeFault(6, "kube-*/[a-"), "\n")},
		"ExcludeLabels":    {"no operator", exclude("{matchExpressions: [{key: a, operator: Is}]}"), `f.yaml:6: spec.daemonSets.exclude[0].matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		"ProgressDeadline": {"never", policy("progressDeadline: 0s"), `f.yaml:5: spec.policy.progressDeadline: Invalid value: "0s": must be more than 0`},

		"ExceptionNothing": {"it would excuse everything", exception("reason: r, owner: o, until: 2026-12-31"), "f.yaml:6: spec.exceptions[0]: Required value: one of agent and code: what is accepted"},
		"ExceptionAgent":   {"a slip is told", fleetHead + "  agents: [{name: falco, clusters: {}, names: [a/b]}]\n  exceptions:\n  - {agent: falko, clusters: {}, reason: r, owner: o, until: 2026-12-31}\n", `f.yaml:7: spec.exceptions[0].agent: Not found: "falko": no agent in spec.agents has this name, did you mean "falco"?`},
		"ExceptionCode":    {"no code", exception("code: node-gone, reason: r, owner: o, until: 2026-12-31"), `f.yaml:6: spec.exceptions[0].code: Invalid value: "node-gone": must be a code such as NodeNotReady`},
		"ExceptionOwner":   {"somebody answers for it", exception("code: A, reason: ' ', until: 2026-12-31"), "f.yaml:6: spec.exceptions[0].reason: Required value\nf.yaml:6: spec.exceptions[0].owner: Required value"},
		"ExceptionForever": {"it ends one day", exception("code: A, reason: r, owner: o"), "f.yaml:6: spec.exceptions[0].until: Required value: the day on which it ends, such as 2026-12-31"},
		"ExceptionDay":     {"no such day", exception("code: A, reason: r, owner: o, until: 2026-02-30"), `f.yaml:6: spec.exceptions[0].until: Invalid value: "2026-02-30": must be a day such as 2026-12-31`},

		"Taint":         {"a key, not a taint", fleetHead + "  taints: {startup: ['a=b:NoSchedule']}\n", `f.yaml:5: spec.taints.startup[0]: Invalid value: "a=b:NoSchedule": must be the key of a taint, without value and effect`},
		"MaxDeletes":    {"negative", policy("maxDeletes: -1"), `f.yaml:5: spec.policy.maxDeletes: Invalid value: "-1": must be a number or a percentage, such as 3 or 10%`},
		"StaleAfter":    {"never", policy("staleAfter: 0s"), `f.yaml:5: spec.policy.staleAfter: Invalid value: "0s": must be more than 0`},
		"GraceEmpty":    {"nothing is no duration", policy("startupGrace: ''"), "f.yaml:5: spec.policy.startupGrace: Required value: a duration such as 5m"},
		"WindowNoFor":   {"how long?", policy("windows: [{allow: '@daily'}]"), "f.yaml:5: spec.policy.windows[0].for: Required value: a duration such as 5m"},
		"WindowBoth":    {"which one would count?", policy("windows: [{allow: '@daily', deny: '@daily', for: 1h}]"), "f.yaml:5: spec.policy.windows[0]: Required value: exactly one of allow and deny"},
		"WindowNeither": {"when?", policy("windows: [{for: 1h}]"), "f.yaml:5: spec.policy.windows[0]: Required value: exactly one of allow and deny"},
		"WindowStart":   {"it would be over", policy("windows: [{allow: '@daily', for: 1h, lastStart: 2h}]"), `f.yaml:5: spec.policy.windows[0].lastStart: Invalid value: "2h": must be shorter than the window itself`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := ParseFleet("f.yaml", []byte(tc.in))
			if err == nil {
				t.Fatalf("%s: ParseFleet accepted:\n%s", tc.reason, tc.in)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(Fleet{}, f, ignoreCompiled); diff != "" {
				t.Errorf("a fleet came beside the error:\n%s", diff)
			}
		})
	}
}

func TestParseFleetSchedules(t *testing.T) {
	const spec, zone = "every minute", "Europe/Berlln"
	_, badSpec := schedule.Parse(spec, "UTC")
	_, badZone := schedule.Parse("@daily", zone)
	if badSpec == nil || badZone == nil {
		t.Fatal("the schedules of this test are not wrong")
	}
	at := func(line, path, value string, err error) string {
		return "f.yaml:" + line + ": " + path + `: Invalid value: "` + value + `": ` + bare(err)
	}
	cases := map[string]struct{ reason, in, want string }{
		"Poll":     {"no schedule", sourceHead + "    poll: " + spec + "\n", at("7", "spec.source.poll", spec, badSpec)},
		"TimeZone": {"no zone: said once, of the zone", sourceHead + "    timeZone: " + zone + "\n", at("7", "spec.source.timeZone", zone, badZone)},
		"Both":     {"both are told", sourceHead + "    poll: " + spec + "\n    timeZone: " + zone + "\n", at("7", "spec.source.poll", spec, badSpec) + "\n" + at("8", "spec.source.timeZone", zone, badZone)},
		"Observe":  {"no schedule", fleetHead + "  policy: {observe: " + spec + "}\n", at("5", "spec.policy.observe", spec, badSpec)},
		"Window":   {"no schedule", fleetHead + "  policy: {windows: [{deny: " + spec + ", for: 1h}]}\n", at("5", "spec.policy.windows[0].deny", spec, badSpec)},
		"Zone":     {"no zone", fleetHead + "  policy: {windows: [{deny: '@daily', for: 1h, timeZone: " + zone + "}]}\n", at("5", "spec.policy.windows[0].timeZone", zone, badZone)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseFleet("f.yaml", []byte(tc.in))
			if err == nil {
				t.Fatalf("%s: ParseFleet accepted it", tc.reason)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// No text that a user wrote where a secret may be comes back in an error.
func TestParseFleetKeepsSecrets(t *testing.T) {
	const canary = "CANARY"
	for _, in := range []string{
		fleetHead + "  source: {url: 'https://x:CANARY@h/r', auth: {token: CANARY, password: [CANARY], tokenFile: {a: CANARY}}}\n",
		fleetHead + "  source: CANARY\n",
		fleetHead + "  source: {url: 'https://x:CANARY@h:p/r'}\n",
		fleetHead + "  source: {url: [CANARY], auth: CANARY, verify: CANARY}\n",
	} {
		if _, err := ParseFleet("f.yaml", []byte(in)); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("ParseFleet(%s): %v", in, err)
		}
	}
}

func TestParseFleetBombs(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "]\n"
	}
	for name, in := range map[string]string{
		"Alias": fleetHead + "  verify: &v {}\n" + bomb,
		"Cycle": "a: &a [*a]\n",
		"Deep":  fleetHead + "  taints: " + strings.Repeat("[", 20000),
		"Large": fleetHead + strings.Repeat("#", maxFile),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := ParseFleet("f.yaml", []byte(in)); err == nil {
				t.Error("ParseFleet accepted it")
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestParseCluster(t *testing.T) {
	defaults := DefaultPolicy()
	defaults.May = []string{"roll"}
	defaults.Windows = []Window{{Deny: "@daily", For: time.Hour, TimeZone: "UTC"}}
	cases := map[string]struct {
		reason string
		in     string
		want   Cluster
	}{
		"Kubeconfig": {
			"paths are as written",
			"apiVersion: rollcall.dev/v1alpha1\nkind: Cluster\nmetadata: {name: prod-eu, labels: {env: prod}}\nspec:\n  kubeconfig: {path: k, context: prod}\n  identity: u\n  reachability: intermittent\n",
			Cluster{Name: "prod-eu", Labels: map[string]string{"env": "prod"}, File: "c.yaml", Kubeconfig: &Kubeconfig{Paths: []string{"k"}, Context: "prod"}, Intermittent: true, Identity: "u", Policy: defaults},
		},
		"Recorded": {
			"one file or several",
			clusterHead + "  recorded: dump.json\n  reachability: steady\n",
			Cluster{Name: "c", File: "c.yaml", Recorded: []string{"dump.json"}, Policy: defaults},
		},
		"RecordedList": {
			"one file or several",
			clusterHead + "  recorded: [a, b]\n",
			Cluster{Name: "c", File: "c.yaml", Recorded: []string{"a", "b"}, Policy: defaults},
		},
		"Policy": {
			"key by key, lists whole, an empty list is one",
			clusterHead + "  recorded: a\n  policy: {may: [], windows: [{allow: '@hourly', for: 1m}], staleAfter: 1h, progressDeadline: 30m, force: fields}\n",
			Cluster{Name: "c", File: "c.yaml", Recorded: []string{"a"}, Policy: Policy{
				May: []string{}, Observe: defaults.Observe, Windows: []Window{{Allow: "@hourly", For: time.Minute, TimeZone: "UTC"}},
				StartupGrace: 5 * time.Minute, ProgressDeadline: 30 * time.Minute, StaleAfter: time.Hour, MaxDeletes: "10%", Force: "fields",
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCluster("c.yaml", []byte(tc.in), defaults)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseClusterFaults(t *testing.T) {
	cases := map[string]struct{ reason, in, name, want string }{
		"Neither":      {"how is it reached?", clusterHead + "  identity: x\n", "c", "c.yaml:4: spec: Required value: one of kubeconfig and recorded"},
		"Both":         {"which one would count?", clusterHead + "  kubeconfig: {path: k}\n  recorded: d\n", "c", "c.yaml:6: spec.recorded: Forbidden: at most one of kubeconfig and recorded"},
		"NoPath":       {"which kubeconfig?", clusterHead + "  kubeconfig: {context: k}\n", "c", "c.yaml:5: spec.kubeconfig.path: Required value: a kubeconfig file"},
		"Secret":       {"not yet", clusterHead + "  kubeconfig: {secretRef: {name: x}, path: k}\n", "c", "c.yaml:5: spec.kubeconfig.secretRef: Forbidden: not supported: Secrets register clusters by themselves: see spec.clusters.hub of the fleet file"},
		"NoDump":       {"nothing is recorded", clusterHead + "  recorded: []\n", "c", "c.yaml:5: spec.recorded: Required value: a dump file or folder"},
		"EmptyDump":    {"likewise", clusterHead + "  recorded: ''\n", "c", "c.yaml:5: spec.recorded[0]: Required value"},
		"DumpType":     {"text", clusterHead + "  recorded: 5\n", "c", "c.yaml:5: spec.recorded[0]: Invalid value: must be text, is a number: put it in quotes"},
		"Reachability": {"not one of the two", clusterHead + "  recorded: d\n  reachability: never\n", "c", `c.yaml:6: spec.reachability: Unsupported value: "never": supported values: "steady", "intermittent"`},
		"Labels":       {"sorted by key", strings.Replace(clusterHead, "name: c", "name: c, labels: {b: '!', a: '?', a/b/c: x}", 1) + "  recorded: d\n", "c", "c.yaml:3: metadata.labels[a]: Invalid value: \"?\": " + labelValue + "\nc.yaml:3: metadata.labels: Invalid value: \"a/b/c\": " + labelKey + "\nc.yaml:3: metadata.labels[b]: Invalid value: \"!\": " + labelValue},
		"LabelTwice":   {"which one would count?", strings.Replace(clusterHead, "name: c", "name: c, labels: {a: x, a: y}", 1) + "  recorded: d\n", "c", "c.yaml:3: metadata.labels.a: Forbidden: duplicate key, first on line 3"},
		"Fleet":        {"another kind", fleetHead, "", `c.yaml:2: kind: Unsupported value: "Fleet": supported values: "Cluster"`},
		"Unreadable":   {"no name either", "a: [", "", "c.yaml:1: did not find expected node content"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cl, err := ParseCluster("c.yaml", []byte(tc.in), DefaultPolicy())
			if err == nil {
				t.Fatalf("%s: ParseCluster accepted it", tc.reason)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(Cluster{Name: tc.name, File: "c.yaml"}, cl); diff != "" {
				t.Errorf("%s: beside the error: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const (
	labelValue = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`
	labelKey   = `a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`
)

func TestUnimplemented(t *testing.T) {
	full := Fleet{
		Agents: []Agent{{}}, Exceptions: []Exception{{}},
		Policy:  Policy{May: []string{"roll", "prune"}, Windows: []Window{{}}},
		Rollout: &Rollout{}, Approvals: []Approval{{}},
	}
	want := []string{
		"spec.policy.windows: accepted, but this version changes nothing, inside a window or outside",
		"spec.policy.may: accepted, but this version only reports: it will not roll, prune",
		"spec.rollout: accepted, but this version changes nothing, in a wave or at once",
		"spec.approvals: accepted, but this version changes nothing, approved or not",
	}
	if diff := cmp.Diff(want, Unimplemented(full)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Unimplemented(Fleet{Policy: Policy{May: []string{}}}); len(got) != 0 {
		t.Errorf("of an empty fleet: %q", got)
	}
}

// Any text is refused with faults that name the file, or yields a fleet in
// which nothing is left to check.
func FuzzParseFleet(f *testing.F) {
	full, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(full))
	for _, seed := range []string{"", "---", "a: &a [*a]", sourceHead, sourceHead + "---\n---\n", fleetHead + "  ? [a]: b\n", fleetHead + "  targets: [{clusters: {matchExpressions: [{}]}}]\n",
		fleetHead + "  daemonSets: {exclude: [{names: ['[/*', a/b]}, {matchLabels: {a: b}}]}\n", fleetHead + "  agents: [{name: a, clusters: {}, names: [a/b], min: 0.000001%, severities: {A: info}}]\n",
		"\xff\xfe", "- - - -", "{", "!!binary x: y", "? : ? : x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		fleet, err := ParseFleet("f.yaml", []byte(in))
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if line == "" {
					t.Errorf("an empty line in %q", err)
				}
			}
			if !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Errorf("no file in %q", err)
			}
			return
		}
		if fleet.Name == "" || fleet.Directory == "" || fleet.Policy.StaleAfter <= 0 || fleet.Source != nil && (fleet.Source.URL == "" || fleet.Source.Path == "") {
			t.Errorf("a fleet that is not whole: %+v", fleet)
		}
		for _, target := range fleet.Targets {
			if target.Overlay == "" || filepath.IsAbs(target.Overlay) || strings.HasPrefix(filepath.Clean(target.Overlay), "..") && !filepath.IsLocal(target.Overlay) {
				t.Errorf("overlay %q", target.Overlay)
			}
			target.Clusters.Matches("a", nil)
		}
		for _, a := range fleet.Agents {
			if _, _, ok := parseMin(a.Min); !ok || a.Reached(0, 1) || len(a.Names) == 0 && a.daemonSets == nil {
				t.Errorf("an agent that is not whole: %+v", a)
			}
		}
		for _, e := range fleet.Exclude {
			if (len(e.Names) == 0) == (e.labels == nil) {
				t.Errorf("a rule of neither names nor labels, or of both: %+v", e)
			}
		}
	})
}
