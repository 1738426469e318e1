package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall.dev/rollcall/controller/report"
)

// faultKind breaks something of the cluster and says how to mend it.
type faultKind struct {
	name  string
	plant func(c *churn, ctx context.Context, n int) (f *fault, mend func(context.Context))
}

var faultKinds = []faultKind{
	{"node not heard from", (*churn).nodeDown},
	{"NoSchedule taint", (*churn).noSchedule},
	{"NoExecute taint", (*churn).noExecute},
	{"image not pulled", func(c *churn, ctx context.Context, _ int) (*fault, func(context.Context)) {
		return c.podFails(ctx, "ImagePullBackOff", "image")
	}},
	{"crash loop", func(c *churn, ctx context.Context, _ int) (*fault, func(context.Context)) {
		return c.podFails(ctx, "CrashLoopBackOff", "container")
	}},
	{"quota", (*churn).quota},
	{"tolerations replaced", (*churn).tolerations},
	{"nodeSelector of nothing", (*churn).selector},
	{"startup taint stays", (*churn).startupTaint},
	{"OnDelete waits", (*churn).onDelete},
	{"malformed excuse", (*churn).malformed},
	{"excused crash", (*churn).excusedCrash},
}

// plant breaks one thing after the other, each for a while, several at once.
func (c *churn) plant(ctx context.Context) {
	order := c.random.Perm(len(faultKinds))
	standing := make(chan struct{}, 7)
	busy := map[string]bool{}
	for n := 0; ; n++ {
		kind := faultKinds[order[n%len(order)]]
		select {
		case standing <- struct{}{}:
		case <-ctx.Done():
		}
		if left, _ := ctx.Deadline(); ctx.Err() != nil || n >= len(faultKinds) && time.Until(left) < churnStands {
			break
		}
		c.mu.Lock()
		again := busy[kind.name]
		busy[kind.name] = true
		c.mu.Unlock()
		if again {
			<-standing
			time.Sleep(500 * time.Millisecond)
			continue
		}
		f, mend := kind.plant(c, c.t.Context(), n)
		f.kind, f.planted = kind.name, time.Now()
		c.mu.Lock()
		c.faults = append(c.faults, f)
		c.mu.Unlock()
		c.mending.Go(func() {
			time.Sleep(churnStands)
			c.mu.Lock()
			f.mended = time.Now()
			c.mu.Unlock()
			mend(c.t.Context())
			c.mu.Lock()
			f.mended = time.Now()
			busy[kind.name] = false
			c.mu.Unlock()
			<-standing
		})
		time.Sleep(1500 * time.Millisecond)
	}
	c.mending.Wait()
}

// take is a calm node that nothing else is done to.
func (c *churn) take() string {
	for {
		c.mu.Lock()
		name := c.calm[c.random.IntN(len(c.calm))]
		taken := c.busy[name]
		c.busy[name] = true
		c.mu.Unlock()
		if !taken {
			return name
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (c *churn) give(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy[node] = false
}

func names(f report.Finding, node string) bool {
	return slices.Contains(f.Nodes.Sample, node) || f.Nodes.Count > len(f.Nodes.Sample) || strings.Contains(f.Message, node)
}

// blocks tells whether a rollout waits for a node.
func blocks(f report.Finding, node string) bool {
	return (f.Code == "RolloutBlocked" || f.Code == "ProgressDeadlineExceeded") && names(f, node)
}

func (c *churn) nodeDown(ctx context.Context, _ int) (*fault, func(context.Context)) {
	node := c.take()
	c.unmanage(ctx, node)
	c.condition(ctx, node, "Unknown")
	return &fault{what: node, matches: func(f report.Finding) bool {
			return f.Cause.Kind == "node" && f.Cause.Key == node && f.Code == "NodeUnreachable" || blocks(f, node) ||
				strings.HasPrefix(f.Cause.Key, "node.kubernetes.io/") && names(f, node) // the taints of it go a moment later
		}}, func(ctx context.Context) {
			c.manage(ctx, node)
			c.condition(ctx, node, "True")
			c.give(node)
		}
}

func (c *churn) tainted(ctx context.Context, key, effect string, code ...string) (*fault, func(context.Context)) {
	node := c.take()
	taint := key + ":" + effect
	c.taint(ctx, node, taint)
	return &fault{what: node + " " + taint, matches: func(f report.Finding) bool {
			return f.Cause.Kind == "taint" && f.Cause.Key == taint && slices.Contains(code, f.Code) || blocks(f, node)
		}}, func(ctx context.Context) {
			for _, ds := range []string{"default/guard", "default/rolling", "default/ondelete", "default/tolerant", "default/moved", "limited/quota"} {
				namespace, name, _ := strings.Cut(ds, "/")
				c.deletes(namespace, name+"-") // the node gets its pods again
				defer c.deletes(namespace, name+"-")
			}
			c.untaint(ctx, node, key)
			c.give(node)
		}
}

func (c *churn) noSchedule(ctx context.Context, n int) (*fault, func(context.Context)) {
	return c.tainted(ctx, fmt.Sprintf("fault.example/s%d", n), "NoSchedule", "CoverageLost", "AgentUncovered")
}

// A NoExecute taint empties the node at once: only the agent tells of it then.
func (c *churn) noExecute(ctx context.Context, n int) (*fault, func(context.Context)) {
	return c.tainted(ctx, fmt.Sprintf("fault.example/x%d", n), "NoExecute", "CoverageLost", "AgentUncovered")
}

func (c *churn) podFails(ctx context.Context, reason, cause string) (*fault, func(context.Context)) {
	node := c.take()
	pod := c.breakPod(ctx, "guard", node, reason)
	return &fault{what: node, matches: func(f report.Finding) bool {
			return f.Code == reason && f.Cause.Kind == cause && names(f, node) || blocks(f, node)
		}}, func(ctx context.Context) {
			c.remove(ctx, "pods", "default", pod)
			c.give(node)
		}
}

func (c *churn) quota(ctx context.Context, _ int) (*fault, func(context.Context)) {
	node := c.take()
	c.apply(ctx, "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: limited}\nspec: {hard: {pods: \"0\"}}\n")
	c.remove(ctx, "pods", "limited", c.podOn(ctx, "limited", "quota", node))
	return &fault{what: node, matches: func(f report.Finding) bool {
			return f.Cause.Kind == "refused" && f.Cause.Key == "limited/quota quota none" && f.Code == "FailedCreate" ||
				(f.Code == "DeletedAtOnce" || f.Code == "NotAttempted") && slices.Equal(f.DaemonSets, []string{"limited/quota"}) // before the first refusal, and where the controller drops events
		}}, func(ctx context.Context) {
			c.remove(ctx, "resourcequotas", "limited", "none")
			c.patch(ctx, "daemonsets", "limited", "quota", `{"metadata":{"annotations":{"look":"again"}}}`) // it waits longer and longer by itself
			c.awaitPod(ctx, "limited", "quota", node)
			c.give(node)
		}
}

func (c *churn) tolerations(ctx context.Context, _ int) (*fault, func(context.Context)) {
	c.patch(ctx, "daemonsets", "default", "tolerant", `{"spec":{"template":{"spec":{"tolerations":[{"key":"edge","operator":"Exists"}]}}}}`)
	return &fault{what: "tolerant", matches: func(f report.Finding) bool {
			return f.Code == "CoverageLost" && f.Cause.Kind == "template" && f.Cause.Key == "default/tolerant tolerations" ||
				slices.Equal(f.DaemonSets, []string{"default/tolerant"}) && (blocks(f, "gpu-0") || blocks(f, "gpu-1"))
		}}, func(ctx context.Context) {
			c.patch(ctx, "daemonsets", "default", "tolerant", `{"spec":{"template":{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"}]}}}}`)
		}
}

func (c *churn) selector(ctx context.Context, _ int) (*fault, func(context.Context)) {
	c.patch(ctx, "daemonsets", "default", "moved", `{"spec":{"template":{"spec":{"nodeSelector":{"non-existing":"true"}}}}}`)
	return &fault{what: "moved", matches: func(f report.Finding) bool {
			return f.Code == "CoverageLost" && f.Cause.Key == "default/moved nodeSelector" ||
				f.Code == "RolloutBlocked" && slices.Equal(f.DaemonSets, []string{"default/moved"})
		}}, func(ctx context.Context) {
			c.patch(ctx, "daemonsets", "default", "moved", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
		}
}

func (c *churn) startupTaint(ctx context.Context, n int) (*fault, func(context.Context)) {
	node := fmt.Sprintf("stuck-%d", n)
	c.addNode(ctx, node, true)
	c.ready(ctx, node)
	return &fault{what: node, matches: func(f report.Finding) bool { return f.Code == "StartupTaintStays" && names(f, node) || blocks(f, node) }},
		func(ctx context.Context) {
			c.untaint(ctx, node, startupKey)
			time.Sleep(churnGrace)
			c.dropNode(ctx, node)
		}
}

func (c *churn) onDelete(ctx context.Context, n int) (*fault, func(context.Context)) {
	c.patch(ctx, "daemonsets", "default", "ondelete", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"change":"%d"}}}}}`, n))
	return &fault{what: "ondelete", matches: func(f report.Finding) bool {
			return f.Code == "WaitingForDelete" && f.Cause.Key == "default/ondelete revision"
		}}, func(ctx context.Context) {
			c.removeAll(ctx, "default", "app=ondelete")
		}
}

func (c *churn) malformed(ctx context.Context, _ int) (*fault, func(context.Context)) {
	node := c.take()
	c.patch(ctx, "nodes", "", node, `{"metadata":{"annotations":{"rollcall.dev/excuse":"because"}}}`)
	return &fault{what: node, matches: func(f report.Finding) bool {
			return f.Code == "InvalidAnnotation" && f.Cause.Key == node+" rollcall.dev/excuse"
		}}, func(ctx context.Context) {
			c.patch(ctx, "nodes", "", node, `{"metadata":{"annotations":{"rollcall.dev/excuse":null}}}`)
			c.give(node)
		}
}

func (c *churn) excusedCrash(ctx context.Context, _ int) (*fault, func(context.Context)) {
	node := c.take()
	c.patch(ctx, "nodes", "", node, `{"metadata":{"annotations":{"rollcall.dev/excuse":"RMA; owner=sre; until=2099-01-01"}}}`)
	pod := c.breakPod(ctx, "tolerant", node, "CrashLoopBackOff")
	return &fault{what: node, silent: true, matches: func(f report.Finding) bool {
			return f.Code == "CrashLoopBackOff" && slices.Contains(f.DaemonSets, "default/tolerant")
		}}, func(ctx context.Context) {
			c.remove(ctx, "pods", "default", pod)
			c.awaitPod(ctx, "default", "tolerant", node)
			c.patch(ctx, "nodes", "", node, `{"metadata":{"annotations":{"rollcall.dev/excuse":null}}}`)
			c.give(node)
		}
}
