package clusters

import (
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeOf keeps what coverage needs of a Node.
func NodeOf(n *corev1.Node) Node {
	return Node{
		Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Conditions: n.Status.Conditions,
		Created: n.CreationTimestamp.Time, Deleting: n.DeletionTimestamp != nil,
		Excuse: n.Annotations[ExcuseAnnotation], Writers: writersOf(n), Allocatable: n.Status.Allocatable,
	}
}

// PodOf keeps what coverage needs of a Pod.
func PodOf(p *corev1.Pod) Pod {
	out := Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Labels: p.Labels, Owner: ownerOf(p.OwnerReferences),
		Node: targetNode(&p.Spec), Bound: p.Spec.NodeName != "", Created: p.CreationTimestamp.Time,
		Phase: p.Status.Phase, Reason: p.Status.Reason, Message: p.Status.Message,
	}
	if p.DeletionTimestamp != nil {
		out.Deleting = p.DeletionTimestamp.Time
	}
	if !out.Bound || out.Phase == corev1.PodFailed {
		out.Placement = new(PlacementOf(&p.Spec))
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			out.Ready, out.ReadySince = true, c.LastTransitionTime.Time
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			out.Unschedulable = c.Message
		}
	}
	out.Containers = append(containersOf(p.Spec.InitContainers, p.Status.InitContainerStatuses, true),
		containersOf(p.Spec.Containers, p.Status.ContainerStatuses, false)...)
	return out
}

// targetNode follows GetTargetNodeName (pkg/controller/daemon/util): the bound
// node, else the first matchFields entry that pins the pod to one name.
func targetNode(spec *corev1.PodSpec) string {
	if spec.NodeName != "" {
		return spec.NodeName
	}
	a := spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn {
				if len(f.Values) != 1 {
					return ""
				}
				return f.Values[0]
			}
		}
	}
	return ""
}

func ownerOf(refs []metav1.OwnerReference) Owner {
	for _, r := range refs {
		if r.Controller != nil && *r.Controller {
			return Owner{Kind: r.Kind, Name: r.Name, UID: string(r.UID)}
		}
	}
	return Owner{}
}

func containersOf(specs []corev1.Container, statuses []corev1.ContainerStatus, init bool) []Container {
	byName := make(map[string]*corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		byName[statuses[i].Name] = &statuses[i]
	}
	out := make([]Container, 0, len(specs))
	for _, s := range specs {
		c := Container{Name: s.Name, Image: s.Image, Init: init}
		if st := byName[s.Name]; st != nil {
			c.Ready, c.Restarts = st.Ready, st.RestartCount
			if w := st.State.Waiting; w != nil {
				c.Waiting = State{w.Reason, w.Message}
			}
			if t := st.State.Terminated; t != nil {
				c.Finished, c.ExitCode = State{t.Reason, t.Message}, t.ExitCode
			} else if t := st.LastTerminationState.Terminated; t != nil {
				c.Finished, c.ExitCode = State{t.Reason, t.Message}, t.ExitCode
			}
		}
		out = append(out, c)
	}
	return out
}

// RevisionOf keeps what coverage needs of a ControllerRevision. Its data is
// the patch that upstream's daemon controller stores: {"spec":{"template":…}}.
func RevisionOf(r *appsv1.ControllerRevision) (Revision, error) {
	var data struct {
		Spec struct {
			Template struct {
				Spec corev1.PodSpec `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if len(r.Data.Raw) > 0 {
		if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
			return Revision{}, fmt.Errorf("decoding ControllerRevision %q in namespace %q: %w", r.Name, r.Namespace, err)
		}
	}
	return Revision{
		Namespace: r.Namespace, Name: r.Name, Owner: ownerOf(r.OwnerReferences), Number: r.Revision,
		Hash: r.Labels[appsv1.ControllerRevisionHashLabelKey], Created: r.CreationTimestamp.Time,
		Placement: PlacementOf(&data.Spec.Template.Spec),
	}, nil
}

// EventOf keeps what coverage needs of an Event. Last is the newest of its
// several times.
func EventOf(e *corev1.Event) Event {
	out := Event{
		Namespace: e.InvolvedObject.Namespace, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, UID: string(e.InvolvedObject.UID),
		Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(e.Count, 1), First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time,
	}
	if e.Series != nil {
		out.Count = max(out.Count, e.Series.Count)
		out.Last = later(out.Last, e.Series.LastObservedTime.Time)
	}
	out.Last = later(later(out.Last, e.EventTime.Time), e.CreationTimestamp.Time)
	if out.First.IsZero() {
		out.First = later(e.EventTime.Time, e.CreationTimestamp.Time)
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
