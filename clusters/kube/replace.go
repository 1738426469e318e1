package kube

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"rollcall.dev/rollcall/clusters"
)

// replace gives a DaemonSet another selector, which the API does not allow to
// change: it is deleted without its pods, these get the labels that the new
// selector asks for, and it is applied anew and adopts them. Whatever was done
// of it before is not done again, so that it goes on where it was broken off.
func (a *applier) replace(ctx context.Context, c clusters.Change) (clusters.Result, error) {
	var desired appsv1.DaemonSet
	if c.Desired == nil || len(c.Keep) == 0 || c.Object.Kind != "DaemonSet" {
		return clusters.Result{}, fmt.Errorf("replacing %s needs a DaemonSet and the labels of its pods", c.Object)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.Desired.Object, &desired); err != nil {
		return clusters.Result{}, fmt.Errorf("reading %s: %w", c.Object, err)
	}
	live, err := get[*appsv1.DaemonSet](ctx, a.session, access{verb: "get", group: "apps", resource: "daemonsets", namespace: c.Object.Namespace, name: c.Object.Name})
	switch {
	case apierrors.IsNotFound(err) && !isUnserved(err): // deleted before
	case err != nil:
		return clusters.Result{}, err
	case equality.Semantic.DeepEqual(live.Spec.Selector, desired.Spec.Selector): // applied before
	case string(live.UID) != c.UID:
		return clusters.Result{Operation: clusters.OpHeld, Reason: "NotOurs", Message: another, UID: string(live.UID)}, nil
	default:
		if err := a.tryReplace(ctx, c, &desired); err != nil {
			return clusters.Result{}, err
		}
		if err := a.orphan(ctx, c, live.UID); err != nil {
			return clusters.Result{}, err
		}
	}
	kept, err := a.relabel(ctx, c, &desired)
	if err != nil {
		return clusters.Result{}, err
	}
	r, err := a.apply(ctx, c)
	if err == nil {
		r.Reason, r.Message = "Replaced", fmt.Sprintf("with another selector; %d pods were kept", kept)
	}
	return r, err
}

// tryReplace makes sure, before anything is deleted, that the cluster would
// take the new DaemonSet and lets us label pods. The first is asked under
// another name, for under its own the selector is refused.
func (a *applier) tryReplace(ctx context.Context, c clusters.Change, desired *appsv1.DaemonSet) error {
	try := c.Desired.DeepCopy()
	try.SetName(strings.TrimRight(c.Object.Name[:min(40, len(c.Object.Name))], ".-") + "-" + strings.ToLower(rand.Text()[:10]))
	q, err := a.applyRequest(ctx, clusters.ReferenceOf(try), try, false)
	if err != nil {
		return err
	}
	q.stage, q.params["dryRun"] = "asking whether the cluster would take the new "+c.Object.String(), metav1.DryRunAll
	if _, _, err := a.metadata(ctx, q); err != nil {
		return err
	}
	pods, err := a.podsOf(ctx, c)
	if err != nil || len(pods) == 0 {
		return err
	}
	return a.label(ctx, &pods[0], missing(pods[0].Labels, desired), metav1.DryRunAll)
}

// orphan deletes a DaemonSet without its pods and waits until it is gone.
func (a *applier) orphan(ctx context.Context, c clusters.Change, uid types.UID) error {
	err := a.erase(ctx, c.Object, uid, metav1.DeletePropagationOrphan)
	if err != nil && (!apierrors.IsNotFound(err) || isUnserved(err)) {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	err = a.until(waiting, c.Object, func(ctx context.Context, ref clusters.Reference) error {
		m, err := a.look(ctx, ref)
		switch {
		case err != nil:
			return err
		case m == nil || m.UID != uid:
			return nil
		case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
			return errors.New("the garbage collector has not let go of its pods: does kube-controller-manager run?")
		}
		return fmt.Errorf("it has finalizers: %s", strings.Join(m.Finalizers, ", "))
	})
	if err != nil {
		return &stepError{stage: "deleting " + c.Object.String() + " without its pods", err: &answerError{fmt.Errorf("%w; its pods run on, and the next apply goes on from here", err)}}
	}
	return nil
}

// podsOf are the pods that the DaemonSet had, whether they are its own or
// nobody's by now.
func (a *applier) podsOf(ctx context.Context, c clusters.Change) ([]corev1.Pod, error) {
	q := query{labels: labels.SelectorFromSet(c.Keep).String()}
	return pages(ctx, a.session, listing("", "pods", c.Object.Namespace), q, func(out []corev1.Pod, list *corev1.PodList) ([]corev1.Pod, error) {
		for _, p := range list.Items {
			owner := metav1.GetControllerOfNoCopy(&p)
			done := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			if !done && (owner == nil || string(owner.UID) == c.UID) {
				out = append(out, corev1.Pod{ObjectMeta: p.ObjectMeta})
			}
		}
		return out, nil
	})
}

// relabel gives those of the pods that are nobody's the labels by which the new
// DaemonSet finds them, and tells how many it will find.
func (a *applier) relabel(ctx context.Context, c clusters.Change, desired *appsv1.DaemonSet) (int, error) {
	pods, err := a.podsOf(ctx, c)
	if err != nil {
		return 0, err
	}
	kept, err := eachOf(ctx, pods, func(ctx context.Context, p corev1.Pod) (bool, error) {
		if metav1.GetControllerOfNoCopy(&p) != nil {
			return false, nil
		}
		err := a.label(ctx, &p, missing(p.Labels, desired), "")
		if apierrors.IsNotFound(err) && !isUnserved(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return 0, err
	}
	return len(slices.DeleteFunc(kept, func(yes bool) bool { return !yes })), nil
}

// missing are the labels that a pod's differ in from what the selector of a
// DaemonSet asks for; nil is one that it must not have.
func missing(has map[string]string, desired *appsv1.DaemonSet) map[string]*string {
	out := map[string]*string{}
	want := desired.Spec.Template.Labels
	need := func(key string) {
		value, wanted := want[key]
		old, there := has[key]
		switch {
		case wanted && (!there || old != value):
			out[key] = &value
		case !wanted && there:
			out[key] = nil
		}
	}
	if s := desired.Spec.Selector; s != nil {
		for key := range s.MatchLabels {
			need(key)
		}
		for _, e := range s.MatchExpressions {
			need(e.Key)
		}
	}
	return out
}

// label changes a pod's labels, of this very pod.
func (a *applier) label(ctx context.Context, p *corev1.Pod, change map[string]*string, dryRun string) error {
	if len(change) == 0 {
		return nil
	}
	q, err := a.about(ctx, clusters.Reference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name}, "patch", http.MethodPatch)
	if err != nil {
		return err
	}
	if q.body, err = json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID, "labels": change}}); err != nil {
		return fmt.Errorf("packing the labels of pod %q: %w", p.Name, err)
	}
	q.stage, q.send = fmt.Sprintf("labelling pod %q", p.Namespace+"/"+p.Name), string(types.MergePatchType)
	q.params = map[string]string{"fieldManager": clusters.FieldManager}
	if dryRun != "" {
		q.params["dryRun"] = dryRun
	}
	_, _, err = a.metadata(ctx, q)
	return err
}
