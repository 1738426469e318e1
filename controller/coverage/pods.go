package coverage

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollcall.dev/rollcall/clusters"
)

// podFacts are what a pod says whoever owns it.
type podFacts uint8

const (
	visible podFacts = 1 << iota // not both terminal and being deleted (rule P3)
	alive                        // neither terminal nor being deleted
	ready
	failing // a container waits on an error
	started // past Pending
	latest  // of the current revision; known once the pod's DaemonSet is judged
)

func (p podFacts) has(x podFacts) bool { return p&x != 0 }

func podFactsOf(p *clusters.Pod) podFacts {
	var f podFacts
	over := p.Phase == corev1.PodFailed || p.Phase == corev1.PodSucceeded
	deleting := !p.Deleting.IsZero()
	if !over || !deleting {
		f |= visible
	}
	if !over && !deleting {
		f |= alive
	}
	if p.Ready {
		f |= ready
	}
	if p.Phase != corev1.PodPending {
		f |= started
	}
	if _, _, bad := failingContainer(p); bad {
		f |= failing
	}
	return f
}

// quietReasons are waiting reasons of a container that is merely on its way.
var quietReasons = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// failingContainer returns the container that waits on an error, and its
// reason with the kubelet's two words for a failed pull folded into one.
func failingContainer(p *clusters.Pod) (*clusters.Container, Code, bool) {
	for i := range p.Containers {
		if c := &p.Containers[i]; !quietReasons[c.Waiting.Reason] {
			if c.Waiting.Reason == "ErrImagePull" {
				return c, ImagePullBackOff, true
			}
			return c, Code(c.Waiting.Reason), true
		}
	}
	return nil, "", false
}

// available follows IsPodAvailable (pkg/api/v1/pod/util.go); the boundary is
// inclusive.
func available(p *clusters.Pod, minReady int32, now time.Time) bool {
	if !p.Ready {
		return false
	}
	return minReady == 0 || !p.ReadySince.IsZero() && !p.ReadySince.Add(time.Duration(minReady)*time.Second).After(now)
}

// podSummary is what the pods of a DaemonSet on one node amount to.
type podSummary struct {
	present   bool // at least one visible pod
	available bool // one is ready, and for long enough
	failing   bool
	onlyWait  bool      // no pod is past Pending; also when there is none
	surplus   bool      // more live pods than a surge explains
	settled   bool      // exactly one pod that is not being deleted, and it is available (rules U10 to U12)
	current   bool      // its pods, the live ones where there are any, are of the current revision
	outdated  bool      // a pod here is of an older revision
	onTheWay  time.Time // creation of the newest pod that neither ended nor is being deleted
}

func (s *set) summarise(node int) podSummary {
	sum := podSummary{onlyWait: true}
	pods, living, undeleted, old, current, latests := 0, 0, 0, 0, 0, 0
	steady := false
	for at := s.start[node]; at < s.start[node+1]; at++ {
		f, p := s.facts[at], &s.w.live.Pods[s.sorted[at]]
		sum.present = true
		sum.failing = sum.failing || f.has(failing)
		sum.onlyWait = sum.onlyWait && !f.has(started)
		isAvailable := f.has(ready) && available(p, s.minReady, s.w.now)
		sum.available = sum.available || isAvailable
		if p.Deleting.IsZero() {
			undeleted++
			steady = isAvailable
		}
		isCurrent := f.has(latest)
		sum.outdated = sum.outdated || s.current != nil && !isCurrent
		pods++
		if isCurrent {
			latests++
		}
		switch {
		case !f.has(alive):
			continue
		case isCurrent:
			living, current = living+1, current+1
		default:
			living, old = living+1, old+1
		}
		if p.Created.After(sum.onTheWay) {
			sum.onTheWay = p.Created
		}
	}
	sum.surplus = living > 1 && !(s.slots > 0 && living == 2 && (s.current == nil || old == 1))
	sum.settled = undeleted == 1 && steady
	sum.current = current > 0 && old == 0 || living == 0 && pods > 0 && latests == pods
	return sum
}

func (s *set) isCurrent(p *clusters.Pod) bool {
	return s.current != nil && p.Labels[hashLabel] == s.current.Hash
}

const (
	hashLabel       = appsv1.ControllerRevisionHashLabelKey
	generationLabel = "pod-template-generation"
)
