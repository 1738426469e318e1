package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"rollcall.dev/rollcall/clusters/kubetest"
)

const startupKey = "node.cilium.io/agent-not-ready"

// hands are what a person or a program does to a cluster.
type hands struct {
	t       *testing.T
	cp      *kubetest.ControlPlane
	client  dynamic.Interface
	mending sync.WaitGroup

	lock    sync.Mutex
	deleted []deletion
}

// deletion is that somebody deleted pods of a DaemonSet.
type deletion struct {
	daemonSet string
	at        time.Time
}

// deletes notes a deletion, by the pod's or the DaemonSet's name.
func (h *hands) deletes(namespace, name string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		name = name[:at]
	}
	h.deleted = append(h.deleted, deletion{namespace + "/" + name, time.Now()})
}

func (h *hands) deletions() []deletion {
	h.lock.Lock()
	defer h.lock.Unlock()
	return slices.Clone(h.deleted)
}

func newHands(t *testing.T, cp *kubetest.ControlPlane) *hands {
	t.Helper()
	config := cp.Client(t)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &hands{t: t, cp: cp, client: client}
}

func (h *hands) resource(name, namespace string) dynamic.ResourceInterface {
	group := ""
	if name == "daemonsets" {
		group = "apps"
	}
	r := h.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: name})
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}

// try notes what went wrong; what is gone already is no fault.
func (h *hands) try(what string, err error) {
	if err != nil && !apierrors.IsNotFound(err) && h.t.Context().Err() == nil {
		h.t.Errorf("%s: %v", what, err)
	}
}

func (h *hands) apply(_ context.Context, manifest string) { h.cp.Apply(h.t, manifest) }

func (h *hands) patch(ctx context.Context, resource, namespace, name, body string, sub ...string) {
	_, err := h.resource(resource, namespace).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "churn"}, sub...)
	h.try("patching "+name, err)
}

func (h *hands) remove(ctx context.Context, resource, namespace, name string) {
	if resource == "pods" {
		h.deletes(namespace, name)
		defer h.deletes(namespace, name)
	}
	h.try("deleting "+name, h.resource(resource, namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

func (h *hands) removeAll(ctx context.Context, namespace, selector string) {
	h.deletes(namespace, strings.TrimPrefix(selector, "app="))
	defer h.deletes(namespace, strings.TrimPrefix(selector, "app="))
	h.try("deleting "+selector, h.resource("pods", namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{LabelSelector: selector}))
}

// taints changes a node's list of taints.
func (h *hands) taints(ctx context.Context, node string, change func([]any) []any) {
	for {
		o, err := h.resource("nodes", "").Get(ctx, node, metav1.GetOptions{})
		if err == nil {
			list, _, _ := unstructured.NestedSlice(o.Object, "spec", "taints")
			if err = unstructured.SetNestedSlice(o.Object, change(list), "spec", "taints"); err == nil {
				_, err = h.resource("nodes", "").Update(ctx, o, metav1.UpdateOptions{FieldManager: "churn"})
			}
		}
		if !apierrors.IsConflict(err) {
			h.try("tainting "+node, err)
			return
		}
	}
}

// taint adds key:effect.
func (h *hands) taint(ctx context.Context, node, text string) {
	key, effect, _ := strings.Cut(text, ":")
	h.taints(ctx, node, func(all []any) []any { return append(all, map[string]any{"key": key, "effect": effect}) })
}

func (h *hands) untaint(ctx context.Context, node, key string) {
	h.taints(ctx, node, func(all []any) []any {
		return slices.DeleteFunc(all, func(t any) bool { return t.(map[string]any)["key"] == key })
	})
}

// condition writes what a kubelet, or its absence, makes of a node.
func (h *hands) condition(ctx context.Context, node, ready string) {
	now := time.Now().UTC().Format(time.RFC3339)
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": ready, "reason": "Churn", "message": "said by the test", "lastHeartbeatTime": now, "lastTransitionTime": now,
	}}}})
	h.try("encoding", err)
	_, err = h.resource("nodes", "").Patch(ctx, node, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: "churn"}, "status")
	h.try("changing the condition of "+node, err)
}

// manage lets kwok play the node's kubelet; unmanage takes it away.
func (h *hands) manage(ctx context.Context, node string) {
	h.patch(ctx, "nodes", "", node, `{"metadata":{"labels":{"type":"kwok"}}}`)
}

// ready is the kubelet's first word: before it no pod runs there.
func (h *hands) ready(ctx context.Context, node string) {
	h.condition(ctx, node, "True")
	h.untaint(ctx, node, "node.kubernetes.io/not-ready") // the node controller takes its time
	h.manage(ctx, node)
	h.mending.Go(func() { // as kubelets do, where the node controller said otherwise meanwhile
		for range 3 {
			time.Sleep(3 * time.Second)
			h.podsReady(ctx, node)
		}
	})
}

// podsReady says again that the pods of a node are ready. kwok says so once.
func (h *hands) podsReady(ctx context.Context, node string) {
	list, err := h.resource("pods", "").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	h.try("listing pods", err)
	if err != nil {
		return
	}
	for _, p := range list.Items {
		conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Ready" && c["status"] == "False" {
				body := `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
				_, err := h.resource("pods", p.GetNamespace()).Patch(ctx, p.GetName(), types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "churn"}, "status")
				h.try("readying "+p.GetName(), err)
			}
		}
	}
}

func (h *hands) unmanage(ctx context.Context, node string) {
	h.patch(ctx, "nodes", "", node, `{"metadata":{"labels":{"type":null}}}`)
}

// addNode makes a node as a cloud does: not ready, and with a startup taint.
func (h *hands) addNode(ctx context.Context, name string, startup bool) {
	taints := ""
	if startup {
		taints = fmt.Sprintf("\nspec: {taints: [{key: %s, effect: NoSchedule}]}", startupKey)
	}
	h.apply(ctx, fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {role: worker, kubernetes.io/os: linux, kubernetes.io/hostname: %[1]s}}%[2]s
status:
  allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
  capacity: {cpu: "32", memory: 256Gi, pods: "110"}
  conditions: [{type: Ready, status: "False", reason: KubeletNotReady, message: starting}]
`, name, taints))
}

// dropNode takes a node away as an autoscaler does.
func (h *hands) dropNode(ctx context.Context, name string) {
	h.taint(ctx, name, "ToBeDeletedByClusterAutoscaler:NoSchedule")
	h.patch(ctx, "nodes", "", name, `{"spec":{"unschedulable":true}}`)
	time.Sleep(2 * time.Second)
	h.remove(ctx, "nodes", "", name)
	for _, namespace := range []string{"default", "limited"} {
		list, err := h.resource("pods", namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			h.try("listing pods", err)
			return
		}
		for _, p := range list.Items {
			if nodeOfPod(p) == name {
				h.remove(ctx, "pods", namespace, p.GetName())
			}
		}
	}
}

func nodeOfPod(p unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
	return name
}

// podOn waits for the pod of a DaemonSet on a node to be ready, and names it.
func (h *hands) podOn(ctx context.Context, namespace, ds, node string) string {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		list, err := h.resource("pods", namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + ds})
		if err != nil {
			h.try("listing pods", err)
			return ""
		}
		for _, p := range list.Items {
			phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
			if nodeOfPod(p) == node && p.GetDeletionTimestamp() == nil && phase == "Running" {
				return p.GetName()
			}
		}
	}
	h.t.Errorf("no pod of %s runs on %s", ds, node)
	return ""
}

func (h *hands) awaitPod(ctx context.Context, namespace, ds, node string) {
	h.podOn(ctx, namespace, ds, node)
}

// breakPod writes what a kubelet says of a container that does not run.
func (h *hands) breakPod(ctx context.Context, ds, node, reason string) string {
	pod := h.podOn(ctx, "default", ds, node)
	phase := map[bool]string{true: "Pending", false: "Running"}[reason == "ImagePullBackOff"]
	now := time.Now().UTC().Format(time.RFC3339)
	h.patch(ctx, "pods", "default", pod, fmt.Sprintf(`{"status":{"phase":%q,"conditions":[{"type":"Ready","status":"False","lastTransitionTime":%q},{"type":"PodScheduled","status":"True","lastTransitionTime":%q}],"containerStatuses":[{"name":"c","image":"registry.example/%s:1","imageID":"","ready":false,"restartCount":7,"state":{"waiting":{"reason":%q,"message":"planted"}}}]}}`, phase, now, now, ds, reason), "status")
	return pod
}

// comeAndGo lets nodes join and leave, pods be deleted and nodes be cordoned.
func (c *churn) comeAndGo(ctx context.Context) {
	random := rand.New(rand.NewPCG(c.seed, 2)).IntN // of this goroutine
	var here []string
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("burst-%d", n)
		c.addNode(c.t.Context(), name, random(2) == 0)
		time.Sleep(time.Duration(1+random(2)) * time.Second)
		c.ready(c.t.Context(), name)
		c.untaint(c.t.Context(), name, startupKey)
		here = append(here, name)
		c.mu.Lock()
		c.joined++
		c.mu.Unlock()
		c.patch(c.t.Context(), "nodes", "", here[random(len(here))], fmt.Sprintf(`{"spec":{"unschedulable":%t},"metadata":{"labels":{"burst":"%d"}}}`, random(2) == 0, n))
		if len(here) > 4 {
			c.leave(here[0])
			here = here[1:]
		}
		time.Sleep(time.Second)
	}
	for _, name := range here {
		c.leave(name)
	}
}

func (c *churn) leave(name string) {
	c.dropNode(c.t.Context(), name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left++
}

// roll updates a DaemonSet again and again, and deletes pods of another one.
func (c *churn) roll(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		c.patch(c.t.Context(), "daemonsets", "default", "rolling", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"change":"%d"}}}}}`, n))
		c.mu.Lock()
		c.rollouts++
		c.mu.Unlock()
		time.Sleep(6 * time.Second)
		c.remove(c.t.Context(), "pods", "default", c.podOn(c.t.Context(), "default", "rolling", "node-0"))
		time.Sleep(4 * time.Second)
	}
}
