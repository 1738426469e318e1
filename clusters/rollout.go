package clusters

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"rollcall.dev/rollcall/sync/schedule"
)

// Rollout is how a commit goes through the fleet: wave after wave.
type Rollout struct {
	Waves  []Wave
	Resume string // commit whose halt somebody has looked at; empty: none
}

// Wave is the clusters that take a commit before those of the next wave. A
// cluster is of the first wave that selects it.
type Wave struct {
	Name     string
	Clusters Selection
	Size     string        // how many of its clusters go at once, or what part of them
	Soak     time.Duration // how long the gate must have been met
	Gate     Gate
}

// Gate is what a cluster must have come to before the rollout goes on: a
// percentage of its nodes.
type Gate struct {
	Covered, UpToDate string
}

// The powers that an Approval gives.
const (
	AllowPrune  = "prune"  // delete DaemonSets, and more objects than maxDeletes
	AllowResume = "resume" // go on although these clusters lost coverage
)

// Approval is somebody's word for one commit and the clusters that it names.
type Approval struct {
	Commit   string
	Clusters []string
	Allow    []string
}

// Approved tells whether one of the approvals allows something of a commit in a
// cluster.
func Approved(all []Approval, allow, commit, cluster string) bool {
	return slices.ContainsFunc(all, func(a Approval) bool {
		return commit != "" && a.Commit == commit && slices.Contains(a.Clusters, cluster) && slices.Contains(a.Allow, allow)
	})
}

// Met tells whether enough of a cluster's nodes are covered, and run the
// revision that is being rolled.
func (g Gate) Met(covered, upToDate, nodes int) (enoughCovered, enoughUpToDate bool) {
	return Agent{Min: g.Covered}.Reached(covered, nodes), Agent{Min: g.UpToDate}.Reached(upToDate, nodes)
}

// Of is a part of so many: of a number that itself, of a percentage what it
// comes to, rounded down, but at least 1. It is 0 for 0, for 0% and for what is
// neither a number nor a percentage.
func Of(text string, all int) int {
	least, percent, ok := parseMin(text)
	switch {
	case !ok:
		return 0
	case percent:
		return max(1, int(least*int64(all)/(100*millionths)))
	}
	return int(least)
}

func (d *document) rollout(at *field.Path, w *wireRollout) *Rollout {
	if w == nil {
		return nil
	}
	r := &Rollout{Resume: w.Resume}
	seen := map[string]bool{}
	for i, w := range w.Waves {
		at := at.Child("waves").Index(i)
		wave := Wave{
			Name:     d.unique(at.Child("name"), w.Name, seen),
			Clusters: d.clusters(at.Child("clusters"), w.Clusters),
			Size:     d.size(at.Child("size"), w.Size),
			Soak:     d.duration(at.Child("soak"), w.Soak, 0),
			Gate: Gate{
				Covered:  d.part(at.Child("gate", "covered"), w.Gate.Covered),
				UpToDate: d.part(at.Child("gate", "upToDate"), w.Gate.UpToDate),
			},
		}
		r.Waves = append(r.Waves, wave)
	}
	for i, wave := range r.Waves {
		all := len(wave.Clusters.Names) == 0 && wave.Clusters.Selector == nil
		if all && i+1 < len(r.Waves) {
			d.add(field.Forbidden(at.Child("waves").Index(i).Child("clusters"), "{} is all clusters: the waves after it would have none"))
		}
	}
	if r.Resume != "" {
		d.commit(at.Child("resume"), r.Resume)
	}
	return r
}

// size checks how many clusters go at once.
func (d *document) size(at *field.Path, text *amount) string {
	size := d.amount(at, text, "100%")
	if text != nil && number.MatchString(size) && Of(size, 100) == 0 {
		d.add(field.Invalid(at, size, "must be more than 0: the wave would never go"))
	}
	return size
}

// part checks a percentage of nodes.
func (d *document) part(at *field.Path, text *amount) string {
	if text == nil {
		return "100%"
	}
	if _, percent, ok := parseMin(string(*text)); !ok || !percent {
		d.add(field.Invalid(at, string(*text), "must be a percentage of the nodes, more than 0 and at most 100%, such as 95% or 99.5%"))
	}
	return string(*text)
}

func (d *document) commit(at *field.Path, id string) string {
	switch {
	case id == "":
		d.add(field.Required(at, "the commit, 40 hexadecimal digits"))
	case !commitID.MatchString(id):
		d.add(field.Invalid(at, id, "must be 40 lower-case hexadecimal digits"))
	}
	return id
}

func (d *document) approvals(at *field.Path, ws []wireApproval) []Approval {
	var all []Approval
	for i, w := range ws {
		at := at.Index(i)
		if len(w.Clusters) == 0 {
			d.add(field.Required(at.Child("clusters"), "the names of the clusters that it is for, each of them"))
		}
		for i, name := range w.Clusters {
			d.name(at.Child("clusters").Index(i), name)
		}
		if len(w.Allow) == 0 {
			d.add(field.Required(at.Child("allow"), "what it allows: prune, resume"))
		}
		for i, what := range w.Allow {
			d.oneOf(at.Child("allow").Index(i), &what, AllowPrune, AllowResume)
		}
		all = append(all, Approval{Commit: d.commit(at.Child("commit"), w.Commit), Clusters: w.Clusters, Allow: w.Allow})
	}
	return all
}

// windows reads when changes may be made. What is not refused here
// schedule.Compile takes.
func (d *document) windows(at *field.Path, ws []wireWindow) []Window {
	all := []Window{}
	for i, w := range ws {
		at := at.Index(i)
		zone := or(w.TimeZone, "UTC")
		win := Window{
			For:       d.duration(at.Child("for"), &w.For, 0),
			TimeZone:  zone,
			LastStart: d.duration(at.Child("lastStart"), w.LastStart, 0),
		}
		if (w.Allow == nil) == (w.Deny == nil) {
			d.add(field.Required(at, "exactly one of allow and deny"))
		}
		if w.Allow != nil {
			win.Allow = d.start(at.Child("allow"), *w.Allow, at.Child("timeZone"), zone)
		}
		if w.Deny != nil {
			win.Deny = d.start(at.Child("deny"), *w.Deny, at.Child("timeZone"), zone)
		}
		d.lengths(at, &w, win)
		all = append(all, win)
	}
	return all
}

// start checks when a window begins: at times that do not depend on who asks.
func (d *document) start(at *field.Path, spec string, zoneAt *field.Path, zone string) string {
	d.cron(at, spec, zoneAt, zone)
	if s, err := schedule.Parse(spec, ""); err == nil && !s.Fixed() {
		d.add(field.Invalid(at, spec, "has no times by the clock: write five fields, or such as @daily"))
	}
	return spec
}

func (d *document) lengths(at *field.Path, w *wireWindow, win Window) {
	switch {
	case win.For > 0 && win.For < schedule.ShortestWindow:
		d.add(field.Invalid(at.Child("for"), w.For, "must be at least "+schedule.Brief(schedule.ShortestWindow)))
	case win.For > schedule.LongestWindow:
		d.add(field.Invalid(at.Child("for"), w.For, "must be at most "+schedule.Brief(schedule.LongestWindow)))
	}
	switch {
	case w.LastStart == nil:
	case w.Deny != nil:
		d.add(field.Forbidden(at.Child("lastStart"), "it is for an allow window: in a deny window no change begins anyway"))
	case win.For > 0 && win.LastStart >= win.For:
		d.add(field.Invalid(at.Child("lastStart"), *w.LastStart, "must be shorter than the window itself"))
	}
}
