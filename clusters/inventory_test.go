package clusters

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func item(name, uid string) Item {
	return Item{Reference: Reference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "logging", Name: name}, UID: uid}
}

var applied = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

func inventory(items ...Item) Inventory {
	return Inventory{Fleet: "agents", Cluster: "east", Overlay: "overlays/east", Commit: "old", AppliedAt: applied, Pending: "new", Items: items}
}

// What an inventory is after its changes: nothing that may still be there is
// ever forgotten.
func TestInventoryAfter(t *testing.T) {
	now := applied.Add(time.Hour)
	result := func(name string, op Operation, uid string) Result {
		return Result{Object: item(name, "").Reference, Operation: op, UID: uid}
	}
	replacing := item("a", "1")
	replacing.Selector = map[string]string{"app": "a"}
	cases := map[string]struct {
		before  Inventory
		results []Result
		items   []Item
		commit  string
		at      time.Time
		pending string
	}{
		"Applied":     {inventory(item("a", "")), []Result{result("a", OpCreated, "1")}, []Item{item("a", "1")}, "new", now, ""},
		"Unchanged":   {inventory(item("a", "1")), []Result{result("a", OpUnchanged, "1")}, []Item{item("a", "1")}, "new", now, ""},
		"UIDUnknown":  {inventory(item("a", "1")), []Result{result("a", OpConfigured, "")}, []Item{item("a", "1")}, "new", now, ""},
		"Recreated":   {inventory(item("a", "1")), []Result{result("a", OpCreated, "2")}, []Item{item("a", "2")}, "new", now, ""},
		"Pruned":      {inventory(item("a", "1"), item("b", "2")), []Result{result("a", OpPruned, "")}, []Item{item("b", "2")}, "new", now, ""},
		"Nothing":     {inventory(item("a", "1")), nil, []Item{item("a", "1")}, "new", now, ""},
		"Failed":      {inventory(item("a", ""), item("b", "")), []Result{result("a", OpFailed, ""), result("b", OpCreated, "2")}, []Item{item("a", ""), item("b", "2")}, "old", applied, "new"},
		"Held":        {inventory(item("a", "1")), []Result{result("a", OpHeld, "")}, []Item{item("a", "1")}, "old", applied, "new"},
		"Unlisted":    {inventory(), []Result{result("a", OpCreated, "1")}, []Item{item("a", "1")}, "new", now, ""},
		"Replaced":    {inventory(replacing), []Result{result("a", OpCreated, "2")}, []Item{item("a", "2")}, "new", now, ""},
		"NotReplaced": {inventory(replacing), []Result{result("a", OpFailed, "")}, []Item{replacing}, "old", applied, "new"},
		"SameCommit": {
			Inventory{Commit: "new", AppliedAt: applied, Pending: "new"}, nil, []Item{}, "new", applied, "",
		},
		"NonePending": {
			Inventory{Commit: "old", AppliedAt: applied}, nil, []Item{}, "old", applied, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.before.Items)
			got := tc.before.After(tc.results, now)
			if diff := cmp.Diff(tc.items, got.Items); diff != "" {
				t.Errorf("items: -want +got:\n%s", diff)
			}
			if got.Commit != tc.commit || !got.AppliedAt.Equal(tc.at) || got.Pending != tc.pending {
				t.Errorf("got commit %q of %v, pending %q", got.Commit, got.AppliedAt, got.Pending)
			}
			if diff := cmp.Diff(before, tc.before.Items); diff != "" {
				t.Errorf("the inventory before was changed:\n%s", diff)
			}
		})
	}
}

func many(n int) Inventory {
	i := inventory()
	for k := range n {
		i.Items = append(i.Items, item(fmt.Sprintf("a-rather-long-name-of-a-config-map-%06d", k), "1b4e28ba-2fa1-11d2-883f-0016d3cca427"))
	}
	return i
}

func TestInventoryPack(t *testing.T) {
	selector := item("z", "9")
	selector.Selector = map[string]string{"app": "z"}
	for name, i := range map[string]Inventory{
		"Empty": inventory(), "Small": inventory(item("a", "1"), item("b", ""), selector), "Large": many(20_000),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := i.Pack("7")
			if err != nil {
				t.Fatal(err)
			}
			names, err := ShardsOf("agents", p.Head)
			if err != nil || len(names) != len(p.Shards) || (name == "Large") != (len(names) > 3) {
				t.Errorf("shards %v of %d: %v", names, len(p.Shards), err)
			}
			for _, s := range p.Shards {
				if len(s["items"]) > 512<<10 {
					t.Errorf("a shard has %d bytes", len(s["items"]))
				}
			}
			got, err := Unpack("agents", p)
			if diff := cmp.Diff(i, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
			again, err := i.Pack("8")
			if err != nil || !again.Same(p.Head) || again.Head["generation"] == p.Head["generation"] {
				t.Error("the same content after another resourceVersion must be the same, with shards of other names")
			}
		})
	}
}

// An inventory that is not whole is an error, never a shorter one.
func TestInventoryBroken(t *testing.T) {
	large, small := many(20_000), inventory(item("a", "1"), item("b", "2"))
	rehash := func(p *Packed) { p.Head["hash"] = digest(p.Head["inventory"], p.Head["items"]) }
	cases := map[string]struct {
		of   Inventory
		harm func(*Packed)
		want string
	}{
		"ShardLost":    {large, func(p *Packed) { p.Shards = p.Shards[1:] }, "shards are there"},
		"ShardsLost":   {large, func(p *Packed) { delete(p.Head, "shards"); p.Shards = nil }, "hash"},
		"ShardsSwap":   {large, func(p *Packed) { p.Shards[0], p.Shards[1] = p.Shards[1], p.Shards[0] }, "hash"},
		"ShardCut":     {large, func(p *Packed) { p.Shards[1]["items"] = p.Shards[1]["items"][:1000] }, "hash"},
		"ShardCount":   {large, func(p *Packed) { p.Head["shards"] = "-1" }, `"-1" shards`},
		"ItemsCut":     {small, func(p *Packed) { p.Head["items"], _, _ = strings.Cut(p.Head["items"], "\n") }, "hash"},
		"ItemsLost":    {small, func(p *Packed) { delete(p.Head, "items") }, "hash"},
		"HeadEdited":   {small, func(p *Packed) { p.Head["inventory"] = strings.Replace(p.Head["inventory"], "old", "odd", 1) }, "hash"},
		"Emptied":      {small, func(p *Packed) { clear(p.Head) }, "hash"},
		"UnknownField": {small, func(p *Packed) { p.Head["inventory"] = `{"fleet":"agents","keep":true}`; rehash(p) }, `unknown field "keep"`},
		"UnknownItem":  {small, func(p *Packed) { p.Head["items"] = `{"kind":"A","name":"b","keep":true}` + "\n"; rehash(p) }, `unknown field "keep"`},
		"NoName":       {small, func(p *Packed) { p.Head["items"] = `{"kind":"A"}` + "\n"; rehash(p) }, "has no name"},
		"Twice":        {small, func(p *Packed) { p.Head["items"] = strings.Repeat(`{"kind":"A","name":"b"}`+"\n", 2); rehash(p) }, "out of order"},
		"OtherFleet": {small, func(p *Packed) {
			p.Head["inventory"] = strings.Replace(p.Head["inventory"], "agents", "others", 1)
			rehash(p)
		}, `that of fleet "others"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := tc.of.Pack("")
			if err != nil {
				t.Fatal(err)
			}
			p.Head = maps.Clone(p.Head)
			tc.harm(&p)
			got, err := Unpack("agents", p)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(got.Items) > 0 {
				t.Errorf("got %v with %d items, want %q", err, len(got.Items), tc.want)
			}
		})
	}
}

// The longest name that a fleet may have is still the name of ConfigMaps and
// the value of a label, and its own.
func TestInventoryName(t *testing.T) {
	long := strings.Repeat("fleet.", 42)
	for _, fleet := range []string{"a", long + "a", long + "b"} {
		i := many(5000)
		i.Fleet = fleet
		p, err := i.Pack("")
		if err != nil {
			t.Fatal(err)
		}
		names, err := ShardsOf(fleet, p.Head)
		if err != nil || len(names) < 2 {
			t.Fatalf("got %v %v", names, err)
		}
		for _, name := range append(names, InventoryName(fleet)) {
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
				t.Errorf("%q: %v", name, wrong)
			}
		}
		if wrong := validation.IsValidLabelValue(FleetLabelValue(fleet)); len(wrong) > 0 {
			t.Errorf("%q: %v", FleetLabelValue(fleet), wrong)
		}
	}
	if FleetLabelValue(long+"a") == FleetLabelValue(long+"b") {
		t.Error("two fleets have one inventory")
	}
}
