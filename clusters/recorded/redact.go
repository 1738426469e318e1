package recorded

import (
	"regexp"
	"slices"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollcall.dev/rollcall/clusters"
)

// longest is how much of a message is kept.
const longest = 300

// Redact keeps of an observation what a report is made of and nothing that may be
// secret: of DaemonSets the fields that say where their pods go and what they
// run, never environment, arguments, commands, probes or annotations of others;
// daemon pods and those that look like them; what other pods claim of their
// nodes, without their names; and the beginning of messages, without logins in
// URLs. What is kept is listed, so that a field of a later
// Kubernetes is left out.
func Redact(l clusters.Live) clusters.Live {
	out := l
	out.Credential = clusters.Credential{}
	out.Nodes = slices.Clone(l.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.Excuse = message(n.Excuse)
		n.Conditions = slices.Clone(n.Conditions)
		for j := range n.Conditions {
			n.Conditions[j].Message = message(n.Conditions[j].Message)
		}
	}
	out.DaemonSets = make([]appsv1.DaemonSet, len(l.DaemonSets))
	for i := range l.DaemonSets {
		out.DaemonSets[i] = daemonSet(&l.DaemonSets[i])
	}
	out.Pods = nil
	for _, p := range l.Pods {
		if concerns(p, out.DaemonSets) {
			out.Pods = append(out.Pods, pod(p))
		}
	}
	out.Claims = nameless(l.Claims, out.Pods)
	out.Events = slices.Clone(l.Events)
	for i := range out.Events {
		out.Events[i].Message = message(out.Events[i].Message)
	}
	return out
}

// nameless leaves out who claims, but of the pods that are kept.
func nameless(claims []clusters.Claim, kept []clusters.Pod) []clusters.Claim {
	known := map[string]bool{}
	for _, p := range kept {
		known[p.UID] = true
	}
	out := slices.Clone(claims)
	for i := range out {
		if c := &out[i]; c.UID == "" || !known[c.UID] {
			c.Name, c.UID, c.Owner = "", "", ""
		}
	}
	return out
}

// concerns tells whether a pod is a DaemonSet's, or looks like one.
func concerns(p clusters.Pod, all []appsv1.DaemonSet) bool {
	if p.Owner.Kind == "DaemonSet" {
		return true
	}
	return slices.ContainsFunc(all, func(d appsv1.DaemonSet) bool {
		if p.Owner.UID == string(d.UID) {
			return true
		}
		s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		return err == nil && d.Namespace == p.Namespace && s.Matches(labels.Set(p.Labels))
	})
}

func pod(p clusters.Pod) clusters.Pod {
	p.Message, p.Unschedulable = message(p.Message), message(p.Unschedulable)
	p.Containers = slices.Clone(p.Containers)
	for i := range p.Containers {
		c := &p.Containers[i]
		c.Waiting.Message, c.Finished.Message = message(c.Waiting.Message), message(c.Finished.Message)
	}
	return p
}

func daemonSet(d *appsv1.DaemonSet) appsv1.DaemonSet {
	out := clusters.Recordable(d)
	for i := range out.Status.Conditions {
		out.Status.Conditions = slices.Clone(out.Status.Conditions)
		out.Status.Conditions[i].Message = message(out.Status.Conditions[i].Message)
	}
	return out
}

// login is a user and a password, or a token, before a host.
var login = regexp.MustCompile(`://[^/\s@"']+@`)

// message is the beginning of a text, without logins.
func message(text string) string {
	text = login.ReplaceAllString(text, "://[hidden]@")
	if len(text) <= longest {
		return text
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
