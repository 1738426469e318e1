package recorded

import (
	"errors"
	"fmt"
	"strings"

	"rollcall.dev/rollcall/clusters"
)

// missing refuses a dump in which all pods, say, would pass for missing.
func (c *collector) missing() error {
	var lacking, commands []string
	// --raw keeps the kind of an empty list, which other outputs leave out.
	for _, r := range []struct{ name, path string }{{"nodes", "/api/v1"}, {"pods", "/api/v1"}, {"daemonsets", "/apis/apps/v1"}} {
		if !c.known[r.name] {
			lacking = append(lacking, r.name)
			commands = append(commands, fmt.Sprintf("kubectl get --raw %s/%s > %s.json", r.path, r.name, r.name))
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	text := fmt.Sprintf("no %s in the dump: record them with: %s", strings.Join(lacking, ", no "), strings.Join(commands, "; "))
	if len(c.empty) > 0 {
		text += fmt.Sprintf(" (%s is empty: kubectl prints nothing there when it is refused)", strings.Join(c.empty, ", "))
	}
	return errors.New(text)
}

func (c *collector) blanks() []clusters.Blank {
	if c.taken {
		return c.unavailable
	}
	var all []clusters.Blank
	for _, resource := range []string{"controllerrevisions", "events", "namespaces"} {
		if !c.known[resource] {
			all = append(all, clusters.Blank{Resource: resource, Reason: "not in the dump"})
		}
	}
	if c.known["namespaces"] && c.identity == "" {
		all = append(all, clusters.Blank{Resource: "namespaces", Reason: "kube-system is not in the dump"})
	}
	return all
}
