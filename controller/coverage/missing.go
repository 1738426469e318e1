package coverage

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// missing says why there is no pod: somebody tried and failed, somebody
// deleted it at once, a taint keeps it out, or nobody tried.
func (s *set) missing(i int) Reason {
	n := &s.w.nodes[i]
	if s.subject.Live == nil {
		return s.absent()
	}
	if at := s.ds.DeletionTimestamp; at != nil {
		return because(NotAttempted, "the DaemonSet is being deleted since "+stamp(at.Time)+": its controller creates no pods any more", s.template("deletionTimestamp"))
	}
	if !s.flags[i].has(shouldRun) {
		if r, ok := s.refusal(s.liveP, n); ok {
			return s.keptOut(i, r)
		}
	}
	if reason, blank := s.w.live.Lacks("events"); blank {
		return because(NotAttempted, "there is no pod; whether one was tried is not known without events ("+reason+")", s.controllerCause())
	}
	refused, before := s.lastEvent("FailedCreate"), ""
	if refused != nil && refused.Last.Before(n.Created) {
		if made := s.lastEvent("SuccessfulCreate"); made != nil && made.Last.After(refused.Last) {
			refused = nil // that was another time
		} else { // the controller waits longer from refusal to refusal
			before = "before the node joined, and the controller has not tried again: "
		}
	}
	count, at := s.vanished(n)
	switch {
	case refused != nil && (at == nil || !at.Last.After(refused.Last)):
		return because(FailedCreate, "creating the pod was refused: "+before+s.refusedBy(refused.Message), Cause{"refused", s.ds.Namespace + "/" + s.ds.Name + " " + refuser(refused.Message)}).since(refused.First)
	case count > 1:
		return because(DeletedAtOnce, fmt.Sprintf("%d created pods are gone again, the last one, %s, created at %s", count, createdPod(at), stamp(at.Last)), s.pods(DeletedAtOnce))
	}
	lead := "there is no pod, and no event tells that one was tried: "
	if count == 1 {
		lead = fmt.Sprintf("pod %s, created at %s, may have been here and is gone, and no event tells that another one was tried: ", createdPod(at), stamp(at.Last))
	}
	return s.untried(lead)
}

// untried is a node without a pod of which no event tells that one was tried.
// The controller is to blame only where nothing shows that it works.
func (s *set) untried(lead string) Reason {
	switch made := s.w.lastMade; {
	case s.lag == "" && s.ds.Status.ObservedGeneration >= s.ds.Generation:
		return because(NotAttempted, lead+"the DaemonSet's own counters know that it is lacking, so that its controller has seen the node; where it fails again and again it records few events", s.pods(NotAttempted))
	case s.within(made):
		return because(NotAttempted, lead+"the DaemonSet controller works, it made a pod at "+stamp(made)+"; where it fails again and again it records few events", s.pods(NotAttempted))
	}
	return because(NotAttempted, lead+"the DaemonSet controller may not be running or has not seen the node", s.controllerCause())
}

// keptOut is an intended node that the live template refuses: for a while, or
// because what should have removed a startup taint has not.
func (s *set) keptOut(i int, r Reason) Reason {
	n := &s.w.nodes[i]
	for _, t := range n.Taints {
		if r.Cause == (Cause{"taint", taintText(t)}) && listed(s.w.keys.startup, t.Key) && s.node(i)&young == 0 {
			r.Code, r.Message = StartupTaintStays, fmt.Sprintf("the startup taint %s was not removed in %s: %s", taintText(t), s.grace, r.Message)
			return r
		}
	}
	r.Message = "kept out for now" + s.behindGit(n, r) + ": " + r.Message
	return s.ofLoss(i, r)
}

func (s *set) absent() Reason {
	return because(DaemonSetAbsent, "the DaemonSet is in Git and not in the cluster", Cause{"absent", s.ds.Namespace + "/" + s.ds.Name})
}

// behindGit says so where Git's template does not refuse the node for what the
// live one does: there the live template is to blame, not the node.
func (s *set) behindGit(n *clusters.Node, live Reason) string {
	for _, c := range s.placementChecks(s.wantP, n) {
		if !c.OK && c.cause == live.Cause {
			return ""
		}
	}
	return " by the live template, which is not Git's"
}

func (s *set) controllerCause() Cause { return Cause{"controller", "daemonset-controller"} }

func (s *set) lastEvent(reason string) *clusters.Event {
	var last *clusters.Event
	for _, e := range s.w.events[string(s.ds.UID)] {
		if e.Reason == reason {
			last = e
		}
	}
	return last
}

// lostPod is a pod that the controller created, did not delete, and that is
// gone.
type lostPod struct {
	event *clusters.Event // of its creation
	node  string          // that it was bound to, empty when no event tells
}

// lostPods lists them in order of their creation.
func (s *set) lostPods() []lostPod {
	accounted := map[string]bool{} // pods that are there, or that it deleted
	own := s.w.events[string(s.ds.UID)]
	if !slices.ContainsFunc(own, func(e *clusters.Event) bool { return createdPod(e) != "" }) {
		return nil
	}
	for _, i := range s.w.owned[string(s.ds.UID)] {
		accounted[s.w.live.Pods[i].Name] = true
	}
	for _, e := range own {
		if e.Reason == "SuccessfulDelete" {
			accounted[strings.TrimPrefix(e.Message, "Deleted pod: ")] = true
		}
	}
	var lost []lostPod
	for _, e := range own {
		if name := createdPod(e); name != "" && !accounted[name] {
			lost = append(lost, lostPod{e, s.w.bound[s.ds.Namespace+"/"+name]})
		}
	}
	return lost
}

// vanished counts the lost pods that may have been a node's, and returns the
// event of the last one. A pod that was bound to another node, or created
// before this one, says nothing about it.
func (s *set) vanished(n *clusters.Node) (count int, last *clusters.Event) {
	for _, l := range s.dead {
		if (l.node == "" || l.node == n.Name) && !l.event.Last.Before(n.Created) {
			count, last = count+1, l.event
		}
	}
	return count, last
}

func createdPod(e *clusters.Event) string {
	name, ok := strings.CutPrefix(e.Message, "Created pod: ")
	if e.Reason != "SuccessfulCreate" || !ok {
		return ""
	}
	return name
}

var refusers = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"quota", regexp.MustCompile(`exceeded quota: ([^,\s]+)`)},
	{"webhook", regexp.MustCompile(`admission webhook "([^"]+)"`)},
	{"webhook", regexp.MustCompile(`failed calling webhook "([^"]+)"`)},
	{"policy", regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`)},
	{"PodSecurity", regexp.MustCompile(`violates PodSecurity "([^"]+)"`)},
	{"serviceaccount", regexp.MustCompile(`error looking up service account ([^:\s]+)`)},
}

// refusedBy is a refusal without what changes from try to try: the name of the
// pod, and that the event stands for several.
func (s *set) refusedBy(message string) string {
	message = strings.TrimPrefix(message, "(combined from similar events): ")
	if before, rest, ok := strings.Cut(message, `"`+s.ds.Name+"-"); ok {
		if random, after, ok := strings.Cut(rest, `"`); ok && len(random) <= len("xxxxx") {
			return before + `"` + s.ds.Name + `-"` + after
		}
	}
	return message
}

// refuser names who refused a creation, without the name of the pod.
func refuser(message string) string {
	for _, r := range refusers {
		if m := r.pattern.FindStringSubmatch(message); m != nil {
			return r.what + " " + m[1]
		}
	}
	return "creation"
}
