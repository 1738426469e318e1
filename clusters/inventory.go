package clusters

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	sigsjson "sigs.k8s.io/json"
)

// FleetLabelValue is a fleet's name as the value of FleetLabel. A name too long
// for a label is cut, with a hash that keeps it apart from others.
func FleetLabelValue(fleet string) string {
	const most, kept = 63, 46
	if len(fleet) <= most {
		return fleet
	}
	return fleet[:kept] + "-" + digest(fleet)[:16]
}

// After is the inventory when the results are in: what was applied has its UID,
// what was pruned is gone, what failed or was held is as before. Only when
// nothing failed and nothing was held is the commit no more pending.
func (i Inventory) After(results []Result, at time.Time) Inventory {
	byIdentity := map[string]Item{}
	for _, item := range i.Items {
		byIdentity[item.Identity()] = item
	}
	whole := true
	for _, r := range results {
		id := r.Object.Identity()
		switch r.Operation {
		case OpCreated, OpConfigured, OpUnchanged:
			item := Item{Reference: r.Object, UID: r.UID}
			if item.UID == "" {
				item.UID = byIdentity[id].UID
			}
			byIdentity[id] = item
		case OpPruned:
			delete(byIdentity, id)
		default:
			// What says itself that it stays is nothing that the commit waits for.
			whole = whole && r.Operation == OpHeld && r.Reason == ReasonKept
		}
	}
	i.Items = make([]Item, 0, len(byIdentity))
	for _, item := range byIdentity {
		i.Items = append(i.Items, item)
	}
	i.sort()
	if !whole || i.Pending == "" {
		return i
	}
	if i.Commit != i.Pending {
		i.Commit, i.AppliedAt = i.Pending, at.UTC()
	}
	i.Pending = ""
	return i
}

func (i *Inventory) sort() {
	slices.SortFunc(i.Items, func(a, b Item) int { return a.Compare(b.Reference) })
}

// shardSize is how many bytes of items one ConfigMap takes: what etcd takes is
// a megabyte more or less, and the rest of the ConfigMap counts too.
const shardSize = 512 << 10

// Keys of the ConfigMaps that hold an inventory.
const (
	headKey       = "inventory"
	itemsKey      = "items"
	shardsKey     = "shards"
	generationKey = "generation"
	hashKey       = "hash"
)

// InventoryName is the name of the ConfigMap that a fleet's inventory begins
// in. The fleet's label is on it and on its shards.
func InventoryName(fleet string) string { return "rollcall-inventory-" + FleetLabelValue(fleet) }

// Packed is an inventory as ConfigMaps hold it. The head is written when all of
// its shards are there, and makes them count.
type Packed struct {
	Head   map[string]string   // data of the ConfigMap of InventoryName
	Shards []map[string]string // data of those of Head's shards, in their order
}

// Pack packs an inventory that takes the place of one with the head's
// resourceVersion after, empty for none. The shards of two writers thus never
// have the same names, unless the one began where the other ended.
func (i Inventory) Pack(after string) (Packed, error) {
	i.Items = slices.Clone(i.Items)
	i.sort()
	head, err := json.Marshal(i)
	if err != nil {
		return Packed{}, fmt.Errorf("packing the inventory: %w", err)
	}
	var parts []string
	var part bytes.Buffer
	for _, item := range i.Items {
		line, err := json.Marshal(item)
		if err != nil {
			return Packed{}, fmt.Errorf("packing %s of the inventory: %w", item.Reference, err)
		}
		if part.Len() > 0 && part.Len()+len(line) >= shardSize {
			parts = append(parts, part.String())
			part.Reset()
		}
		part.Write(append(line, '\n'))
	}
	parts = append(parts, part.String())
	p := Packed{Head: map[string]string{headKey: string(head), hashKey: digest(append([]string{string(head)}, parts...)...)}}
	p.Head[generationKey] = digest(after, p.Head[hashKey])[:16]
	if len(parts) == 1 {
		p.Head[itemsKey] = parts[0]
		return p, nil
	}
	p.Head[shardsKey] = strconv.Itoa(len(parts))
	for _, part := range parts {
		p.Shards = append(p.Shards, map[string]string{itemsKey: part})
	}
	return p, nil
}

// Same tells whether two heads say the same, and so do their shards.
func (p Packed) Same(head map[string]string) bool {
	return p.Head[hashKey] == head[hashKey] && p.Head[headKey] == head[headKey]
}

// ShardsOf are the names of the ConfigMaps that a head counts on.
func ShardsOf(fleet string, head map[string]string) ([]string, error) {
	text, sharded := head[shardsKey]
	if !sharded {
		return nil, nil
	}
	const most = 1000
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || head[generationKey] == "" {
		return nil, fmt.Errorf("the inventory of fleet %q: ConfigMap %q says %q shards of generation %q", fleet, InventoryName(fleet), text, head[generationKey])
	}
	var names []string
	for shard := range n {
		names = append(names, fmt.Sprintf("%s-%s-%d", InventoryName(fleet), head[generationKey], shard))
	}
	return names, nil
}

// Unpack reads what Pack made of a fleet's inventory. It is the whole of it or
// an error, for what is not in an inventory is never pruned, and what is in it
// by mistake may be.
func Unpack(fleet string, p Packed) (Inventory, error) {
	i, err := unpack(fleet, p)
	if err != nil {
		return Inventory{}, fmt.Errorf("the inventory of fleet %q is broken: %w; nothing is pruned until it is deleted (kubectl -n rollcall delete configmap -l %s=%s) and written anew", fleet, err, FleetLabel, FleetLabelValue(fleet))
	}
	return i, nil
}

func unpack(fleet string, p Packed) (i Inventory, err error) {
	parts := []string{p.Head[itemsKey]}
	if names, err := ShardsOf(fleet, p.Head); err != nil {
		return i, err
	} else if len(names) > 0 {
		parts = nil
		if len(p.Shards) != len(names) {
			return i, fmt.Errorf("%d of %d shards are there", len(p.Shards), len(names))
		}
	}
	for _, shard := range p.Shards {
		parts = append(parts, shard[itemsKey])
	}
	if digest(append([]string{p.Head[headKey]}, parts...)...) != p.Head[hashKey] {
		return i, errors.New("its content has not the hash that was written with it, so that something else has changed it")
	}
	if err := strictly([]byte(p.Head[headKey]), &i); err != nil {
		return i, err
	}
	if i.Fleet != fleet {
		return i, fmt.Errorf("it is that of fleet %q", i.Fleet)
	}
	for _, part := range parts {
		for line := range bytes.Lines([]byte(part)) {
			var item Item
			if err := strictly(line, &item); err != nil {
				return i, err
			}
			if n := len(i.Items); n > 0 && i.Items[n-1].Compare(item.Reference) >= 0 || item.Kind == "" || item.Name == "" {
				return i, fmt.Errorf("item %d, %s, is out of order or has no name", n, item.Reference)
			}
			i.Items = append(i.Items, item)
		}
	}
	return i, nil
}

// strictly refuses what it does not know: a later rollcall may mean something
// by it that matters before anything is deleted.
func strictly(data []byte, into any) error {
	problems, err := sigsjson.UnmarshalStrict(data, into)
	if err = errors.Join(append(problems, err)...); err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	return nil
}

// digest is the hash of texts, which no other texts have.
func digest(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d:", len(text))
		_, _ = io.WriteString(h, text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
