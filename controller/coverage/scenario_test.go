package coverage

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"rollcall.dev/rollcall/clusters"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/*.txtar")

// scenario is one file of testdata: a sentence that says what it shows, the
// inputs, and what must come out.
type scenario struct {
	live    clusters.Live
	desired []appsv1.DaemonSet
	options Options
}

// scenarioOptions is options.yaml.
type scenarioOptions struct {
	ObservedAt          metav1.Time     `json:"observedAt"`
	Grace               metav1.Duration `json:"grace"`
	ProgressDeadline    metav1.Duration `json:"progressDeadline"`
	Commit              string          `json:"commit"`
	Lacks               []string        `json:"lacks"`
	Taints              clusters.Taints `json:"taints"`
	ComparisonOperators bool            `json:"comparisonOperators"`
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 40 {
		t.Fatalf("testdata has %d scenarios", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runScenario(t, file) })
	}
}

func runScenario(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if sentence := strings.TrimSpace(string(a.Comment)); !strings.HasSuffix(sentence, ".") {
		t.Errorf("the file begins with %q, which is not a sentence", sentence)
	}
	s, err := parseScenario(a)
	if err != nil {
		t.Fatal(err)
	}
	c := s.compute()
	checkInvariants(t, &s.live, c)
	got := renderAll(c.DaemonSets) + renderWhole(c)
	if *update {
		rewriteWant(t, file, a, got)
		return
	}
	want, ok := section(a, "want")
	if !ok || len(bytes.TrimSpace(want)) == 0 {
		t.Fatal("the file has no want section: run go test ./controller/coverage -update, and read the diff")
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s(-want +got):\n%s", a.Comment, diff)
	}
}

func section(a *txtar.Archive, name string) ([]byte, bool) {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return nil, false
}

func rewriteWant(t *testing.T, file string, a *txtar.Archive, got string) {
	t.Helper()
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
	a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

func parseScenario(a *txtar.Archive) (*scenario, error) {
	s := &scenario{}
	for _, f := range a.Files {
		var err error
		switch f.Name {
		case "live.yaml":
			err = s.readLive(f.Data)
		case "desired.yaml":
			var ds appsv1.DaemonSet
			err = yaml.UnmarshalStrict(f.Data, &ds)
			s.desired = append(s.desired, ds)
		case "options.yaml":
			err = s.readOptions(f.Data)
		case "fleet.yaml":
			err = s.readFleet(f.Data)
		case "want":
		default:
			err = fmt.Errorf("what is this")
		}
		if err != nil {
			return nil, fmt.Errorf("reading section %q: %w", f.Name, err)
		}
	}
	return s, nil
}

func (s *scenario) readOptions(data []byte) error {
	var o scenarioOptions
	if err := yaml.UnmarshalStrict(data, &o); err != nil {
		return err
	}
	s.live.ObservedAt = o.ObservedAt.Time
	for _, resource := range o.Lacks {
		s.live.Blanks = append(s.live.Blanks, clusters.Blank{Resource: resource, Reason: "forbidden"})
	}
	s.options = Options{Grace: o.Grace.Duration, ProgressDeadline: o.ProgressDeadline.Duration, Commit: o.Commit, Taints: o.Taints, ComparisonOperators: o.ComparisonOperators}
	return nil
}

// readFleet takes agents and exceptions from a fleet file.
func (s *scenario) readFleet(data []byte) error {
	f, err := clusters.ParseFleet("fleet.yaml", data)
	s.options.Agents, s.options.Exceptions = f.Agents, f.Exceptions
	return err
}

func (s *scenario) readLive(data []byte) error {
	for document := range strings.SplitSeq("\n"+string(data), "\n---") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		if err := s.readObject([]byte(document)); err != nil {
			return fmt.Errorf("%w in\n%s", err, document)
		}
	}
	return nil
}

func (s *scenario) readObject(data []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(data, &kind); err != nil {
		return err
	}
	switch l := &s.live; kind.Kind {
	case "DaemonSet":
		return read(data, func(ds *appsv1.DaemonSet) { l.DaemonSets = append(l.DaemonSets, *ds) })
	case "Node":
		return read(data, func(n *corev1.Node) { l.Nodes = append(l.Nodes, clusters.NodeOf(n)) })
	case "Pod":
		return read(data, func(p *corev1.Pod) { l.Pods = append(l.Pods, clusters.PodOf(p)) })
	case "Lease":
		return read(data, func(l *coordinationv1.Lease) { s.lease(l.Name, l.Spec.RenewTime.Time) })
	case "Event":
		return read(data, func(e *corev1.Event) { l.Events = append(l.Events, clusters.EventOf(e)) })
	case "ControllerRevision":
		var bad error
		err := read(data, func(r *appsv1.ControllerRevision) {
			var revision clusters.Revision
			revision, bad = clusters.RevisionOf(r)
			l.Revisions = append(l.Revisions, revision)
		})
		if err == nil {
			err = bad
		}
		return err
	}
	return fmt.Errorf("kind %q is none of a scenario's", kind.Kind)
}

// lease sets when a node that was read before it last renewed its lease.
func (s *scenario) lease(node string, at time.Time) {
	for i := range s.live.Nodes {
		if s.live.Nodes[i].Name == node {
			s.live.Nodes[i].Lease = at
		}
	}
}

func read[T any](data []byte, keep func(*T)) error {
	v := new(T)
	if err := yaml.UnmarshalStrict(data, v); err != nil {
		return err
	}
	keep(v)
	return nil
}

// subjects pairs live and desired DaemonSets by namespace and name.
func (s *scenario) subjects() []Subject {
	var out []Subject
	at := map[string]int{}
	key := func(ds *appsv1.DaemonSet) string { return ds.Namespace + "/" + ds.Name }
	for i := range s.live.DaemonSets {
		at[key(&s.live.DaemonSets[i])] = len(out)
		out = append(out, Subject{Live: &s.live.DaemonSets[i]})
	}
	for i := range s.desired {
		if at, ok := at[key(&s.desired[i])]; ok {
			out[at].Desired = &s.desired[i]
			continue
		}
		out = append(out, Subject{Desired: &s.desired[i]})
	}
	return out
}

func (s *scenario) compute() Cluster { return Compute(&s.live, s.subjects(), s.options) }

// renderWhole writes what is said of the cluster.
func renderWhole(c Cluster) string {
	var b strings.Builder
	for _, a := range c.Agents {
		fmt.Fprintf(&b, "agent %s %v intended=%d covered=%d waiting=%d excused=%d missing=%v met=%t\n", a.Name, a.DaemonSets, a.Intended, a.Covered, a.Waiting, a.Excused, a.Missing, a.Met)
		for _, g := range a.Gaps {
			fmt.Fprintf(&b, "  gap %v %s%s\n", g.Nodes, g.Reason.Code, reasonText(g.Reason))
		}
	}
	for i, used := range c.Used {
		fmt.Fprintf(&b, "exception %d used=%t\n", i, used)
	}
	for _, p := range c.Problems {
		fmt.Fprintf(&b, "problem %s%s\n", p.Code, reasonText(p))
	}
	return b.String()
}

func renderAll(all []DaemonSet) string {
	var b strings.Builder
	for i := range all {
		if len(all) > 1 {
			fmt.Fprintf(&b, "# %s/%s\n", all[i].Namespace, all[i].Name)
		}
		render(&b, &all[i])
	}
	return b.String()
}

// render writes one DaemonSet: "node State Code… covered upToDate | message"
// for each node, then everything that is said of the whole.
func render(b *strings.Builder, d *DaemonSet) {
	for _, r := range d.Rows(func(State) bool { return true }) {
		words := []string{r.Node, r.State.String()}
		for _, reason := range r.Reasons {
			words = append(words, string(reason.Code))
		}
		words = append(words, map[bool]string{true: "covered", false: "-"}[r.Covered], upToDateWord(r.UpToDate))
		if r.Excused != nil {
			words = append(words, fmt.Sprintf("excused(%s by %s until %s)", r.Excused.Reason, r.Excused.Owner, r.Excused.Until.Format(time.DateOnly)))
		}
		b.WriteString(strings.Join(words, " "))
		for _, reason := range r.Reasons {
			b.WriteString(reasonText(reason))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "counts %s\n", countsText(d.Counts))
	for _, s := range d.Strays {
		fmt.Fprintf(b, "stray %s %s%s\n", s.Pod.Name, s.Reason.Code, reasonText(s.Reason))
	}
	for _, p := range d.Problems {
		fmt.Fprintf(b, "problem %s%s\n", p.Code, reasonText(p))
	}
	for _, l := range d.Lost {
		fmt.Fprintf(b, "lost %v old=%t unclaimed=%t%s\n", l.Nodes, l.Old, l.Unclaimed, reasonText(l.Reason))
	}
	if len(d.Outdated) > 0 {
		fmt.Fprintf(b, "outdated %s\n", strings.Join(d.Outdated, " "))
	}
	if len(d.Joined) > 0 {
		fmt.Fprintf(b, "joined %s\n", strings.Join(d.Joined, " "))
	}
	if d.Rollout != nil {
		fmt.Fprintf(b, "rollout %s%s\n", d.Rollout.Code, reasonText(*d.Rollout))
	}
}

func upToDateWord(up *bool) string {
	switch {
	case up == nil:
		return "-"
	case *up:
		return "upToDate"
	}
	return "outdated"
}

func reasonText(r Reason) string {
	text := fmt.Sprintf(" | [%s %s] %s", r.Cause.Kind, r.Cause.Key, r.Message)
	if !r.Since.IsZero() {
		text += " since=" + r.Since.UTC().Format(time.RFC3339)
	}
	return text
}

func countsText(c Counts) string {
	text := fmt.Sprintf("nodes=%d intended=%d shouldRun=%d covered=%d upToDate=%d", c.Nodes, c.Intended, c.ShouldRun, c.Covered, c.UpToDate)
	if !c.UpToDateKnown {
		text = strings.Replace(text, fmt.Sprintf("upToDate=%d", c.UpToDate), "upToDate=unknown", 1)
	}
	if c.Excused > 0 {
		text += fmt.Sprintf(" excused=%d", c.Excused)
	}
	for _, st := range States() {
		if n := c.States[st]; n > 0 {
			text += fmt.Sprintf(" %s=%d", st, n)
		}
	}
	return text
}

// checkInvariants holds what must be true of every result.
func checkInvariants(t testing.TB, live *clusters.Live, c Cluster) {
	t.Helper()
	all := c.DaemonSets
	var names []string
	for i := range live.Pods {
		names = append(names, live.Pods[i].Name)
	}
	checkWhole(t, c, names)
	for i := range all {
		d := &all[i]
		rows := d.Rows(func(State) bool { return true })
		checkCounts(t, d, len(live.Nodes), rows)
		for j, r := range rows {
			if j > 0 && rows[j-1].Node >= r.Node {
				t.Errorf("node %q comes after %q", r.Node, rows[j-1].Node)
			}
			checkRow(t, r, names)
		}
		for _, p := range d.Problems {
			checkReason(t, p, names)
		}
		for _, s := range d.Strays {
			checkReason(t, s.Reason, names)
		}
		for _, l := range d.Lost {
			if checkReason(t, l.Reason, names); len(l.Nodes) == 0 {
				t.Errorf("a loss of no node: %+v", l)
			}
		}
		if d.Rollout != nil {
			checkReason(t, *d.Rollout, names)
			if len(d.Outdated) == 0 {
				t.Errorf("%s holds up a rollout that nothing waits for", d.Rollout.Code)
			}
		}
	}
}

// checkWhole is checkInvariants for what is said of the cluster.
func checkWhole(t testing.TB, c Cluster, pods []string) {
	t.Helper()
	for _, p := range c.Problems {
		checkReason(t, p, pods)
	}
	for _, a := range c.Agents {
		for _, g := range a.Gaps {
			checkReason(t, g.Reason, pods)
		}
	}
}

func checkCounts(t testing.TB, d *DaemonSet, nodes int, rows []Row) {
	t.Helper()
	sum := 0
	for _, n := range d.Counts.States {
		sum += n
	}
	c := d.Counts
	if sum != nodes || len(rows) != nodes || c.Nodes != nodes {
		t.Errorf("%d nodes, %d rows, counts %+v", nodes, len(rows), c)
	}
	if c.Covered > c.Intended || c.UpToDate > c.Intended {
		t.Errorf("more covered or up to date than intended: %+v", c)
	}
}

func checkRow(t testing.TB, r Row, pods []string) {
	t.Helper()
	if (r.State == Covered) != (len(r.Reasons) == 0) {
		t.Errorf("node %q is %s with reasons %v", r.Node, r.State, r.Reasons)
	}
	if r.ShouldRun && !r.ShouldContinueRunning {
		t.Errorf("node %q should run and not continue running", r.Node)
	}
	if r.Covered && (!r.Intended || len(r.Pods) == 0) {
		t.Errorf("node %q is covered, intended %t, pods %d", r.Node, r.Intended, len(r.Pods))
	}
	for _, reason := range r.Reasons {
		checkReason(t, reason, pods)
	}
}

func checkReason(t testing.TB, r Reason, pods []string) {
	t.Helper()
	if r.Code == "" || r.Message == "" || r.Cause.Kind == "" || r.Cause.Key == "" {
		t.Errorf("a reason is blank: %+v", r)
	}
	if strings.Contains(r.Message, "%!") || strings.Contains(r.Message, "0001-01-01") {
		t.Errorf("a message is misprinted: %q", r.Message)
	}
	for _, p := range pods {
		if p != "" && slices.Contains(strings.FieldsFunc(r.Cause.Key, func(c rune) bool { return c == ' ' || c == '/' }), p) {
			t.Errorf("cause %v holds the name of pod %q", r.Cause, p)
		}
	}
}
