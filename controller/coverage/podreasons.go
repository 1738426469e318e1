package coverage

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// stuckAfter is how long after its grace period a pod may still be there.
const stuckAfter = time.Minute

// podReasons says why no pod here is available, newest pod first: it is the
// one that is meant to become it.
func (s *set) podReasons(pods []*clusters.Pod) []Reason {
	sorted := slices.SortedFunc(slices.Values(pods), func(a, b *clusters.Pod) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Name, b.Name))
	})
	var rs []Reason
	for _, p := range sorted {
		r := s.podReason(p)
		if !slices.ContainsFunc(rs, func(have Reason) bool { return have.Code == r.Code && have.Cause == r.Cause }) {
			rs = append(rs, r)
		}
	}
	if n, e := s.backOff(pods); e != nil {
		rs = append(rs, because(FailedPodBackOff, fmt.Sprintf("the controller deletes and re-creates failed pods with growing delays, %d here so far: %s", n, e.Message), s.pods(FailedPodBackOff)))
	}
	return rs
}

// backOff counts the failed pods that the controller found on the node of a
// failed one (failedPodsBackoff in pkg/controller/daemon/daemon_controller.go).
func (s *set) backOff(pods []*clusters.Pod) (n int, last *clusters.Event) {
	at := slices.IndexFunc(pods, func(p *clusters.Pod) bool { return p.Phase == corev1.PodFailed })
	if at < 0 {
		return 0, nil
	}
	for _, e := range s.w.events[string(s.ds.UID)] {
		if e.Reason == "FailedDaemonPod" && strings.Contains(e.Message, " on node "+pods[at].Node+",") {
			n, last = n+int(e.Count), e
		}
	}
	return n, last
}

func (s *set) podReason(p *clusters.Pod) Reason {
	if r, drifted := s.admissionDrift(p); drifted {
		return r
	}
	switch c, code, bad := failingContainer(p); {
	case p.Phase == corev1.PodFailed || p.Phase == corev1.PodSucceeded:
		return s.ended(p)
	case !p.Deleting.IsZero():
		return s.terminating(p)
	case p.Phase == corev1.PodPending && !p.Bound:
		return s.unscheduled(p)
	case bad:
		return s.failing(p, c, code)
	case p.Ready:
		return because(MinReadySeconds, fmt.Sprintf("pod %s is ready%s, not yet for the %d s of minReadySeconds", p.Name, since(p.ReadySince), s.minReady), s.template("minReadySeconds"))
	case p.Phase == corev1.PodPending:
		return s.creating(p)
	}
	return s.unready(p)
}

// ended is a pod that failed, was evicted or completed, in the kubelet's words.
func (s *set) ended(p *clusters.Pod) Reason {
	code, message := Code(p.Reason), p.Message
	for _, c := range p.Containers {
		if code == "" && c.Finished.Reason != "" && c.ExitCode != 0 {
			code, message = Code(c.Finished.Reason), fmt.Sprintf("container %s exited with %d", c.Name, c.ExitCode)
		}
	}
	if code == "" {
		code = cmp.Or(Code(map[corev1.PodPhase]Code{corev1.PodSucceeded: Completed}[p.Phase]), "Failed")
	}
	return because(code, fmt.Sprintf("pod %s is %s%s", p.Name, p.Phase, said("", message)), s.container(string(code)))
}

// container is a cause by container or, where none is to blame, by what
// happened to the pods of the DaemonSet.
func (s *set) container(name string) Cause {
	return Cause{"container", s.ds.Namespace + "/" + s.ds.Name + " " + name}
}

func (s *set) terminating(p *clusters.Pod) Reason {
	if s.w.now.Sub(p.Deleting) > stuckAfter {
		return because(StuckTerminating, fmt.Sprintf("pod %s should have been gone at %s: the kubelet has not confirmed its end, or a finalizer holds it", p.Name, stamp(p.Deleting)), Cause{"node", p.Node}).since(p.Deleting)
	}
	return because(Terminating, fmt.Sprintf("pod %s is being deleted until %s", p.Name, stamp(p.Deleting)), s.pods(Terminating))
}

func (s *set) unscheduled(p *clusters.Pod) Reason {
	if p.Unschedulable == "" {
		return because(FailedScheduling, fmt.Sprintf("pod %s waits for node %s and no scheduler has looked at it", p.Name, p.Node), Cause{"unschedulable", s.ds.Namespace + "/" + s.ds.Name + " scheduler"}).since(p.Created)
	}
	return because(FailedScheduling, fmt.Sprintf("pod %s does not fit on node %s: %s", p.Name, p.Node, p.Unschedulable), Cause{"unschedulable", s.ds.Namespace + "/" + s.ds.Name + " " + lacking(p.Unschedulable)}).since(p.Created)
}

var insufficient = regexp.MustCompile(`Insufficient ([^\s,.]+)`)

// lacking names the resource or port that keeps a pod from its node.
func lacking(message string) string {
	switch m := insufficient.FindStringSubmatch(message); {
	case m != nil:
		return m[1]
	case strings.Contains(message, "Too many pods"):
		return "pods"
	case strings.Contains(message, "free ports"):
		return "port"
	case strings.Contains(message, "volume"):
		return "volume"
	}
	return "placement"
}

func (s *set) failing(p *clusters.Pod, c *clusters.Container, code Code) Reason {
	if imageReasons[code] {
		return because(code, fmt.Sprintf("pod %s cannot pull image %s%s", p.Name, c.Image, said("", c.Waiting.Message)), Cause{"image", c.Image})
	}
	message := fmt.Sprintf("container %s of pod %s waits", c.Name, p.Name) + said("", c.Waiting.Message) + lastEnd(c)
	return because(code, message, s.container(c.Name))
}

// imageReasons are the kubelet's words for an image that it does not get
// (pkg/kubelet/images/types.go); the cause is the image.
var imageReasons = map[Code]bool{
	ImagePullBackOff: true, "InvalidImageName": true, "ErrImageNeverPull": true,
	"ImageInspectError": true, "RegistryUnavailable": true, "SignatureValidationFailed": true,
}

func lastEnd(c *clusters.Container) string {
	if c.Finished.Reason == "" {
		return ""
	}
	return fmt.Sprintf("; it last ended with %s, exit code %d%s", c.Finished.Reason, c.ExitCode, said("", c.Finished.Message))
}

func (s *set) creating(p *clusters.Pod) Reason {
	message := fmt.Sprintf("pod %s is bound to its node and its containers do not run yet", p.Name)
	if c := unfinishedInit(p); c != nil {
		message = fmt.Sprintf("pod %s waits for its init container %s to finish%s", p.Name, c.Name, lastEnd(c))
	}
	return because(ContainerCreating, message+s.lastWarning(p, ""), s.container("creation"))
}

// unfinishedInit is the init container that runs: the kubelet has looked at
// the pod, and the containers behind it wait for their turn.
func unfinishedInit(p *clusters.Pod) *clusters.Container {
	for i := range p.Containers {
		if c := &p.Containers[i]; c.Init && !c.Ready && c.Waiting.Reason == "" {
			if p.Containers[len(p.Containers)-1].Waiting.Reason == "PodInitializing" {
				return c
			}
		}
	}
	return nil
}

func (s *set) unready(p *clusters.Pod) Reason {
	at := slices.IndexFunc(p.Containers, func(c clusters.Container) bool { return !c.Init && !c.Ready })
	if at < 0 {
		message := fmt.Sprintf("pod %s runs and is not ready", p.Name)
		if len(p.Containers) > 0 {
			message = fmt.Sprintf("the containers of pod %s are ready and the pod is not: a readiness gate, or the kubelet has not said so yet", p.Name)
		}
		return because(ReadinessProbe, message+s.lastWarning(p, ""), s.container("pod"))
	}
	c := &p.Containers[at]
	message := fmt.Sprintf("container %s of pod %s runs and is not ready", c.Name, p.Name)
	if c.Finished.Reason != "" { // it may be between two crashes
		message = fmt.Sprintf("container %s of pod %s is not ready%s", c.Name, p.Name, lastEnd(c))
	}
	return because(ReadinessProbe, message+s.lastWarning(p, "Unhealthy"), s.container(c.Name))
}

// lastWarning is what was last said against a pod, the preferred reason first.
func (s *set) lastWarning(p *clusters.Pod, preferred string) string {
	var last *clusters.Event
	for _, e := range s.w.events[p.UID] {
		if e.Type == corev1.EventTypeWarning && (last == nil || e.Reason == preferred || last.Reason != preferred) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return "; last warning " + last.Reason + ": " + last.Message
}
