package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/clusters/hub"
)

// Hub is the clusters of a fleet that a hub's Secrets register, together with
// those of Cluster files. It remembers what the hub said last, so that a hub
// that cannot be read never means that there are no clusters.
type Hub struct {
	Declared clusters.Hub
	Policy   clusters.Policy    // of the fleet
	Files    []clusters.Cluster // of the folder of Cluster files, and
	Broken   []Broken           // those that are wrong
	// Read reads the Secrets. Follow calls back whenever they changed, until ctx
	// ends or they cannot be read.
	Read   func(context.Context, clusters.Hub) (hub.Set, error)
	Follow func(context.Context, clusters.Hub, func(hub.Set) error) error

	mu      sync.Mutex
	last    *hub.Set // nil before the first success
	at      time.Time
	current bool  // last is being followed
	fault   error // of the newest try, nil after a success
}

// Found is all clusters of a fleet, those that can be used and those that
// cannot, sorted by name.
type Found struct {
	Clusters []clusters.Cluster
	Broken   []Broken
	Stale    error // the hub could not be read: since when what it said is old, and why
}

// Load returns the clusters as they are now. Where the hub cannot be read they
// are those that it registered when it last could, and Stale says so; where it
// never could there is no list of clusters, which is the error.
func (h *Hub) Load(ctx context.Context) (Found, error) {
	if !h.followed() {
		set, err := h.Read(ctx, h.Declared)
		if err := ctx.Err(); err != nil {
			return Found{}, err
		}
		h.note(set, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return Found{}, fmt.Errorf("reading the hub's Secrets: %w", h.fault)
	}
	var found Found
	found.Clusters, found.Broken = join(h.Declared, h.Policy, h.Files, h.Broken, *h.last)
	if h.fault != nil {
		found.Stale = fmt.Errorf("reading the hub's Secrets: %w; the clusters that it registered at %s are judged", h.fault, h.at.UTC().Format(time.RFC3339))
	}
	if len(found.Clusters)+len(found.Broken) == 0 {
		return Found{}, h.nothing()
	}
	return found, nil
}

// Run follows the Secrets until ctx ends, so that Load need not read them. When
// they cannot be followed it tries again later, and Load reads meanwhile.
func (h *Hub) Run(ctx context.Context) {
	const pause = 30 * time.Second
	for ctx.Err() == nil {
		err := h.Follow(ctx, h.Declared, func(set hub.Set) error {
			h.note(set, nil)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.current = true
			return nil
		})
		h.mu.Lock()
		h.current = false
		if ctx.Err() == nil && err != nil {
			h.fault = err
		}
		h.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (h *Hub) followed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// note keeps what was read, or why it was not.
func (h *Hub) note(set hub.Set, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault = err; err == nil {
		h.last, h.at = &set, time.Now()
	}
}

// nothing is no list of clusters: a fleet without any would look green.
func (h *Hub) nothing() error {
	where := "any namespace"
	if ns := h.Declared.Namespaces; len(ns) > 0 {
		where = "namespace " + quoted(ns)
	}
	hint := ""
	if slices.Contains(h.Declared.Secrets, clusters.RollcallSecrets) {
		hint = fmt.Sprintf(": label a Secret that holds a kubeconfig %s=true", hub.Label)
	}
	return errors.New("no Secret of the hub in " + where + " registers a cluster (" + strings.Join(h.Declared.Secrets, ", ") + ")" + hint)
}
