package coverage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// steps are what a pod goes through, in order; the first one that fails keeps
// it from those that follow.
var steps = []string{"pod", "scheduled", "running", "ready", "available", "up to date"}

// podChecks follow the pod from its creation to the current revision. A node
// that no pod is meant for, and that has none, has no such story.
func (s *set) podChecks(i int) []Check {
	pods := s.newestFirst(i)
	if len(pods) == 0 && !s.flags[i].has(shouldRun|intended) {
		return nil
	}
	failed, fault := s.failedStep(i, pods)
	var out []Check
	for k, name := range steps {
		switch {
		case k < failed:
			out = append(out, Check{Name: name, OK: true, Message: s.stepText(name, pods[0])})
		case k == failed:
			fault.Name = name
			out = append(out, fault)
		default:
			out = append(out, Check{Name: name, Skipped: true, Message: "not reached"})
		}
	}
	return out
}

// newestFirst are the pods of a node; one that is not being deleted leads.
func (s *set) newestFirst(i int) []*clusters.Pod {
	var pods []*clusters.Pod
	for _, p := range s.podsOn(i) {
		pods = append(pods, &s.w.live.Pods[p])
	}
	slices.SortFunc(pods, func(a, b *clusters.Pod) int {
		if goes, too := !a.Deleting.IsZero(), !b.Deleting.IsZero(); goes != too {
			return map[bool]int{true: 1, false: -1}[goes]
		}
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Name, b.Name))
	})
	return pods
}

// failedStep is the step that the pod has not taken, with why; after the last
// one where it has taken all.
func (s *set) failedStep(i int, pods []*clusters.Pod) (int, Check) {
	if len(pods) == 0 {
		r := s.missing(i)
		return 0, Check{Message: r.Message, Fixes: s.createFixes(r)}
	}
	p := pods[0]
	over := p.Phase == corev1.PodFailed || p.Phase == corev1.PodSucceeded
	_, _, bad := failingContainer(p)
	at := len(steps)
	switch {
	case !p.Bound && !over:
		at = 1
	case over, !p.Deleting.IsZero(), bad, p.Phase == corev1.PodPending:
		at = 2
	case !p.Ready:
		at = 3
	case !available(p, s.minReady, s.w.now):
		at = 4
	case s.current == nil:
		return 5, Check{Message: "which revision is current is not known"}
	case !s.isCurrent(p):
		return 5, s.outdatedCheck(p)
	default:
		return at, Check{}
	}
	r := s.podReason(p)
	return at, Check{Message: r.Message, Fixes: s.podFixes(p, r)}
}

func (s *set) stepText(step string, p *clusters.Pod) string {
	switch step {
	case "pod":
		return fmt.Sprintf("pod %s is there, created at %s", p.Name, stamp(p.Created))
	case "scheduled":
		return "it is bound to the node"
	case "running":
		return fmt.Sprintf("its phase is %s and no container waits on an error", p.Phase)
	case "ready":
		return "it is ready" + since(p.ReadySince)
	case "available":
		if s.minReady == 0 {
			return "minReadySeconds is 0"
		}
		return fmt.Sprintf("it has been ready for the %d s of minReadySeconds", s.minReady)
	}
	return fmt.Sprintf("it is of revision %d, which is current", s.current.Number)
}

func (s *set) outdatedCheck(p *clusters.Pod) Check {
	c := Check{Message: fmt.Sprintf("it is of an older revision than %d, which is current; the rolling update will come to it", s.current.Number)}
	if onDelete(s.ds) {
		c.Message = fmt.Sprintf("it is of an older revision than %d, which is current; updateStrategy is OnDelete, so that it stays until it is deleted", s.current.Number)
		c.Fixes = []Fix{{"delete the pod, and the controller makes one of the current revision", s.kubectl("delete", "pod", p.Name)}}
	}
	return c
}

// createFixes show who refused a pod, or that nobody tried.
func (s *set) createFixes(r Reason) []Fix {
	events := Fix{"see what the controller tried", s.kubectl("describe", "ds", s.ds.Name)}
	switch r.Code {
	case DaemonSetAbsent:
		return []Fix{{Text: "apply it from Git"}}
	case NotAttempted:
		return []Fix{{"see whether the controller manager renews its lease", []string{"-n", "kube-system", "get", "lease", "kube-controller-manager", "-o", "yaml"}}, events}
	case FailedCreate:
		if fix, ok := s.refuserFix(strings.TrimPrefix(r.Cause.Key, s.key()+" ")); ok {
			return []Fix{fix, events}
		}
	}
	return []Fix{events}
}

// refuserFix shows what refused the creation, by what refuser made of it.
func (s *set) refuserFix(who string) (Fix, bool) {
	kind, name, _ := strings.Cut(who, " ")
	switch kind {
	case "quota":
		return Fix{"see the quota, and raise it", s.kubectl("describe", "quota", name)}, true
	case "webhook":
		return Fix{"see the webhooks of the cluster", []string{"get", "validatingwebhookconfigurations,mutatingwebhookconfigurations"}}, true
	case "policy":
		return Fix{"see the policy", []string{"describe", "validatingadmissionpolicy", name}}, true
	case "PodSecurity":
		return Fix{"see the namespace's Pod Security labels", []string{"get", "namespace", s.ds.Namespace, "--show-labels"}}, true
	case "serviceaccount":
		return Fix{"see the service accounts of the namespace", s.kubectl("get", "serviceaccounts")}, true
	}
	return Fix{}, false
}

// podFixes show why a pod does not come on.
func (s *set) podFixes(p *clusters.Pod, r Reason) []Fix {
	describe := Fix{"see its events", s.kubectl("describe", "pod", p.Name)}
	logs := func(text string, more ...string) Fix {
		_, container, found := strings.Cut(r.Cause.Key, " ")
		words := s.kubectl("logs", p.Name)
		if found && slices.ContainsFunc(p.Containers, func(c clusters.Container) bool { return c.Name == container }) {
			words = append(words, "-c", container)
		}
		return Fix{text, append(words, more...)}
	}
	switch r.Code {
	case CrashLoopBackOff:
		return []Fix{logs("read what it said before it ended", "--previous")}
	case ReadinessProbe:
		return []Fix{logs("read its log"), describe}
	case StuckTerminating:
		return []Fix{
			{"see whether the node is there", []string{"describe", "node", p.Node}},
			{"if the machine is gone for good, let go of the pod; on a machine that still runs, its containers go on unseen", s.kubectl("delete", "pod", p.Name, "--force", "--grace-period=0")},
		}
	case MinReadySeconds, Terminating:
		return []Fix{{Text: "wait"}}
	}
	return []Fix{describe}
}
