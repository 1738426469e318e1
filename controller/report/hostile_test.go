package report_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/controller/coverage"
	"rollcall.dev/rollcall/controller/report"
	"rollcall.dev/rollcall/sync/source"
)

// hostile is a report in which every text that a cluster or a repository
// decides is an attack, in one line.
func hostile(t *testing.T) report.Report {
	t.Helper()
	data, err := os.ReadFile("testdata/hostile.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ds appsv1.DaemonSet
	if err := yaml.Unmarshal(data, &ds); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, v := range ds.Annotations {
		all = append(all, v)
	}
	slices.Sort(all)
	evil := strings.Join(all, " ") + " @everyone #1 https://evil.example www.evil.example <!-- `code` ~~x~~ $x$ \u061c \x9b31m \xff &lt;b&gt;"
	ds.UID, ds.Labels = "uid", map[string]string{"meta.helm.sh/release-name": evil}
	n := node("n1" + evil)
	n.Taints = []corev1.Taint{{Key: "k" + evil, Value: evil, Effect: corev1.TaintEffectNoSchedule}}
	down := node("n2" + evil)
	down.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: evil, Message: evil}
	owner := clusters.Owner{Kind: "DaemonSet", Name: "agent", UID: "uid"}
	waits := clusters.Pod{Namespace: ds.Namespace, Name: "p" + evil, UID: "p1", Labels: ds.Spec.Selector.MatchLabels, Owner: owner, Node: "n3", Bound: true, Phase: corev1.PodPending,
		Containers: []clusters.Container{{Name: "c", Image: ds.Spec.Template.Spec.Containers[0].Image, Waiting: clusters.State{Reason: "Bad" + evil, Message: evil}}}}
	there := clusters.Pod{Namespace: ds.Namespace, Name: "q" + evil, UID: "p2", Labels: ds.Spec.Selector.MatchLabels, Owner: owner, Node: n.Name, Bound: true, Phase: corev1.PodRunning, Ready: true}
	stray := clusters.Pod{Namespace: ds.Namespace, Name: "s" + evil, UID: "p3", Labels: ds.Spec.Selector.MatchLabels, Node: "gone" + evil, Bound: true, Phase: corev1.PodRunning}
	desired := ds
	desired.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "clean" + evil}}
	absent := daemonSet(variant{}, "ns"+evil, "absent"+evil, "i")
	c := judge(variant{}, report.Judged{
		Cluster: clusters.Cluster{Name: "c" + evil}, Overlay: "o" + evil, HasSource: true, Desired: []appsv1.DaemonSet{desired, absent},
		Live: clusters.Live{
			ObservedAt: noon, Version: "v1" + evil, Identity: "id" + evil, Nodes: []clusters.Node{n, down, node("n3")},
			Pods: []clusters.Pod{waits, there, stray}, DaemonSets: []appsv1.DaemonSet{ds}, Blanks: []clusters.Blank{{Resource: "events", Reason: evil}},
		},
	}, coverage.State.Attention)
	away := report.NewCluster(report.Judged{Cluster: clusters.Cluster{Name: "away" + evil}, HasSource: true, ObserveErr: &clusters.ObserveError{State: clusters.Denied, Stage: "listing " + evil, Err: errText(evil)}}, nil)
	unrendered := report.NewCluster(report.Judged{Cluster: clusters.Cluster{Name: "x" + evil}, HasSource: true, RenderErr: errText(evil), Live: clusters.Live{ObservedAt: noon}}, nil)
	rev := source.Revision{URL: "https://git.example/" + evil, Ref: evil, Commit: strings.Repeat("0", 40)}
	return report.New(report.Scope{Fleet: clusters.Fleet{Name: "fleet" + evil}, At: noon, Revision: rev, NodesListed: "attention"}, []report.Cluster{c, away, unrendered}, []report.Finding{report.NewFinding("", evil, evil, coverage.Cause{Kind: evil, Key: evil})})
}

// steers tells of a rune that a terminal or a reader would not show as itself.
func steers(r rune) bool {
	return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029'
}

func TestTerminalIsNotSteered(t *testing.T) {
	r := hostile(t)
	texts := map[string]string{}
	for _, format := range []string{"table", "wide", "name", "markdown"} {
		texts[format] = encode(t, format, r)
	}
	for i, c := range r.Clusters {
		for _, d := range c.DaemonSets {
			for _, n := range d.Nodes {
				story, err := report.NewStory(c, n.Name)
				if err != nil {
					continue // of a cluster that was not read
				}
				texts["story"+string(rune('0'+i))] += story.Text(report.Style{})
			}
		}
	}
	if len(texts) != 5 {
		t.Fatalf("%d texts: the stories are not among them", len(texts))
	}
	for format, text := range texts {
		if i := strings.IndexFunc(text, steers); i >= 0 {
			t.Errorf("%s holds %q", format, text[max(0, i-20):min(len(text), i+20)])
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "level=info") {
				t.Errorf("%s has a line that was forged: %q", format, line)
			}
		}
		if !strings.Contains(text, `\u001b`) {
			t.Errorf("%s does not show the escape that was there: does it hold the attack at all?", format)
		}
	}
}

// JSON escapes by itself; the attack must come out as it went in.
func TestJSONKeepsText(t *testing.T) {
	text := encode(t, "json", hostile(t))
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) && r < 0x80 }); i >= 0 {
		t.Errorf("a control character at %d", i)
	}
	findings := decode(t, []byte(text))["findings"].([]any)
	if message := findings[0].(map[string]any)["message"].(string); !strings.Contains(message, "\x1b[2J") {
		t.Errorf("the message is not as it was: %q", message)
	}
}

func TestMarkdownIsInert(t *testing.T) {
	text := encode(t, "markdown", hostile(t))
	for what, pattern := range map[string]string{
		"an HTML element": `<(/?)(img|script|b|!--)`,
		"a link":          `(^|[^\\])\[x(\\)?[^\\]\]\(`,
		"a bare URL":      `https?://evil`,
		"a bare host":     `www\.evil`,
		"a mention":       `@everyone`,
		"an issue":        `#1\b`,
		"code":            "(^|[^\\\\])`code",
		"a strike":        `(^|[^\\])~~`,
	} {
		// The source is shown as code and a summary is HTML, in which nothing
		// of Markdown is read.
		body := regexp.MustCompile("(?m)^Source `[^`\n]*`|^<details><summary>[^<\n]*</summary>$").ReplaceAllString(text, "")
		if m := regexp.MustCompile(pattern).FindString(body); m != "" {
			t.Errorf("%s is left: %q", what, m)
		}
	}
	if !strings.Contains(text, "Source `https://git.example/") {
		t.Error("the source is not shown as code")
	}
	if summary := regexp.MustCompile(`<summary>[^\n]*`).FindString(text); strings.Count(summary, "<") != 2 || strings.Contains(summary, "@everyone") || strings.Contains(summary, `\_`) {
		t.Errorf("the summary is not plain HTML: %q", summary)
	}
	if !strings.Contains(text, "&amp;lt;b&amp;gt;") {
		t.Error("an entity of the input is not shown as written")
	}
	columns := 0
	for line := range strings.Lines(text) {
		bars := len(regexp.MustCompile(`(^|[^\\])\|`).FindAllString(line, -1))
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
		case columns == 0:
			columns = bars
		case bars != columns:
			t.Errorf("%d bars in a table of %d: %q", bars, columns, line)
		}
	}
}

// Nodes whose messages differ must not pass for having the first one's.
func TestGroupedMessages(t *testing.T) {
	l := clusters.Live{ObservedAt: noon, DaemonSets: []appsv1.DaemonSet{daemonSet(variant{}, "obs", "agent", "agent:1")}}
	for _, name := range []string{"n1", "n2", "n3"} {
		n := node(name)
		n.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "disk of " + name + " is full"}
		l.Nodes = append(l.Nodes, n)
	}
	c := judge(variant{}, report.Judged{Cluster: clusters.Cluster{Name: "c"}, Live: l}, coverage.State.Attention)
	text := encode(t, "table", report.New(report.Scope{At: noon, NodesListed: "attention"}, []report.Cluster{c}, nil))
	want := "n1, n2, n3\n        n1: the node's Ready condition is False (KubeletNotReady): disk of n1 is full\n"
	if !strings.Contains(text, want) {
		t.Errorf("the message must say whose it is:\n%s", text)
	}
}

func TestStory(t *testing.T) {
	c := prod(variant{})
	if _, err := report.NewStory(c, "n99"); err == nil || !strings.Contains(err.Error(), `no node "n99"`) {
		t.Errorf("an unknown node must be told, got %v", err)
	}
	if _, err := report.NewStory(gone(), "n1"); err == nil {
		t.Error("a cluster that was not read tells a story")
	}
	story, err := report.NewStory(c, "n3")
	if err != nil {
		t.Fatal(err)
	}
	text := story.Text(report.Style{})
	for _, want := range []string{
		"node n3 of cluster prod\n", "kube-system/proxy  Excluded\n", "obs/agent  Misscheduled\n", "pod agent-n3, Running, ready, revision new\n",
		"should run: no, a pod there may stay: yes, intended: no\n", "UntoleratedTaint: a pod is there and should not run: taint gpu=yes:NoSchedule is not tolerated",
		"remedy: tolerate the taint, or remove it from the node\n", "covered: no, up to date: yes\n", "no pod\n", "up to date: not known\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the story lacks %q:\n%s", want, text)
		}
	}
	if strings.Count(text, "remedy:") != 2 { // of the taint, and of the loss
		t.Errorf("what is excluded by design needs no remedy:\n%s", text)
	}
}
