package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollcall.dev/rollcall/clusters"
)

const (
	readyWithin = 30 * time.Second
	lookEvery   = 200 * time.Millisecond
)

// needsOf are what an object needs beside itself, in the words of unready.
func needsOf(ref clusters.Reference) []string {
	needs := []string{kindNeed(ref.Group(), ref.Kind)}
	if ref.Namespace != "" {
		needs = append(needs, namespaceNeed(ref.Namespace))
	}
	return needs
}

func kindNeed(group, kind string) string { return "kind " + group + "/" + kind }

func namespaceNeed(name string) string { return "namespace " + name }

// await waits until the kinds and namespaces of a stage can be used, and notes
// those that cannot. Of those that could not be made, who needs them will be told
// by the server.
func (a *applier) await(ctx context.Context, changes []clusters.Change, done []clusters.Result) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for i, c := range changes {
		if c.Do != clusters.Apply || c.Desired == nil || done[i].Operation == clusters.OpFailed || done[i].Operation == clusters.OpHeld {
			continue
		}
		switch c.Object.Group() + "/" + c.Object.Kind {
		case "/Namespace":
			if err := a.until(ctx, c.Object, a.active); err != nil {
				a.unready[namespaceNeed(c.Object.Name)] = fmt.Sprintf("namespace %q: %v", c.Object.Name, err)
			}
		case "apiextensions.k8s.io/CustomResourceDefinition":
			group, _, _ := unstructured.NestedString(c.Desired.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(c.Desired.Object, "spec", "names", "kind")
			if err := a.until(ctx, c.Object, a.established); err != nil {
				a.unready[kindNeed(group, kind)] = fmt.Sprintf("kind %s of %q: %v", kind, group, err)
			}
		}
	}
}

// never is an error that no waiting mends.
type never struct{ error }

// until asks again and again, up to the time of the context.
func (a *applier) until(ctx context.Context, ref clusters.Reference, ready func(context.Context, clusters.Reference) error) error {
	for {
		err := ready(ctx, ref)
		if err == nil {
			return nil
		}
		if n, ok := errors.AsType[never](err); ok {
			return n.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		case <-time.After(lookEvery):
		}
	}
}

// whole reads an object with its status.
func (a *applier) whole(ctx context.Context, ref clusters.Reference, kind string) (*unstructured.Unstructured, error) {
	q, err := a.about(ctx, ref, "get", http.MethodGet)
	if err != nil {
		return nil, err
	}
	answer, err := a.send(ctx, q)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, decodeAs(q, answer, kind, u)
}

func (a *applier) active(ctx context.Context, ref clusters.Reference) error {
	u, err := a.whole(ctx, ref, "Namespace")
	if err != nil {
		return a.unreadable(ctx, ref, err)
	}
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if phase == string(corev1.NamespaceTerminating) {
		return never{errors.New("it is being deleted")}
	}
	if phase != string(corev1.NamespaceActive) {
		return fmt.Errorf("its phase is %q", phase)
	}
	return nil
}

// unreadable lets what may not be read count as ready: who needs it will see.
func (a *applier) unreadable(ctx context.Context, ref clusters.Reference, err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	_, message := a.refusedBy(ctx, ref, err)
	return errors.New(message)
}

// established waits also until the server lists the kind.
func (a *applier) established(ctx context.Context, ref clusters.Reference) error {
	u, err := a.whole(ctx, ref, "CustomResourceDefinition")
	if err != nil {
		return a.unreadable(ctx, ref, err)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		switch {
		case c["type"] == "NamesAccepted" && c["status"] == "False":
			return never{fmt.Errorf("its names are not accepted: %v", c["message"])}
		case c["type"] == "Established" && c["status"] == "True":
			return a.listed(ctx, u)
		}
	}
	return errors.New("it is not Established")
}

// listed tells whether a kind is in the server's list of every version that its
// definition serves.
func (a *applier) listed(ctx context.Context, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	a.forget(group)
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		if served, _ := v["served"].(bool); !served || strings.Contains(name, "/") {
			continue
		}
		if _, err := a.resource(ctx, clusters.Reference{APIVersion: group + "/" + name, Kind: kind}); err != nil {
			return err
		}
	}
	return nil
}
