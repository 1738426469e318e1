package drift

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"rollcall.dev/rollcall/clusters"
)

// Doubtful are the desired objects that an API server has something to say of:
// those that differ, or are not there.
func (in Input) Doubtful(o Outcome) []*unstructured.Unstructured {
	differ := map[string]bool{}
	for _, x := range o.Objects {
		if x.State == Modified || x.State == Absent {
			differ[x.Object.Identity()] = true
		}
	}
	var out []*unstructured.Unstructured
	for i := range in.Objects {
		if differ[clusters.ReferenceOf(&in.Objects[i]).Identity()] {
			out = append(out, &in.Objects[i])
		}
	}
	return out
}

// Confirm takes what an API server said of the doubtful objects into an outcome:
// a difference that an apply would not change, because the server writes the
// value in another way, is none; what the server would not take is Invalid; what
// it was not asked, or did not answer, is unconfirmed.
func (t *Types) Confirm(in Input, o Outcome, said []clusters.Confirmed) Outcome {
	by := map[string]*clusters.Confirmed{}
	for i := range said {
		by[said[i].Object.Identity()] = &said[i]
	}
	o.Objects = slices.Clone(o.Objects)
	for i := range o.Objects {
		x := &o.Objects[i]
		if s := by[x.Object.Identity()]; s != nil && (x.State == Modified || x.State == Absent) {
			t.confirm(in, x, s)
		}
	}
	o.Objects = slices.DeleteFunc(o.Objects, func(x Object) bool {
		return x.State == Same && len(x.Foreign)+len(x.Ignored)+len(x.Unknown) == 0
	})
	return o
}

func (t *Types) confirm(in Input, x *Object, s *clusters.Confirmed) {
	switch {
	case s.Unconfirmed != "":
		x.Confirmation, x.Message = Unconfirmed, s.Unconfirmed
		return
	case s.Refused != "" && x.Immutable: // which is why, as far as is known
		x.Confirmation, x.Message = Confirmed, s.Refused
		return
	case s.Refused != "":
		x.State, x.Confirmation, x.Message = Invalid, Confirmed, s.Refused
		return
	}
	x.Confirmation = Confirmed
	if x.State == Absent || s.After == nil {
		return
	}
	real := t.changes(in, x.Object, s.After)
	x.Fields = slices.DeleteFunc(slices.Clone(x.Fields), func(f Field) bool {
		return f.Change != Added && !slices.ContainsFunc(real, func(r Field) bool { return along(r.Path, f.Path) })
	})
	if len(x.Fields) == 0 {
		x.State = Same
	}
}

// changes are the fields that an apply would change, by what the server would
// make of the object.
func (t *Types) changes(in Input, ref clusters.Reference, after *unstructured.Unstructured) []Field {
	in.Objects, in.DaemonSets, in.Ignore = []unstructured.Unstructured{*after}, nil, nil
	if isDaemonSet(ref) {
		var ds appsv1.DaemonSet
		if runtime.DefaultUnstructuredConverter.FromUnstructured(after.Object, &ds) != nil {
			return nil
		}
		in.DaemonSets = []appsv1.DaemonSet{ds}
	}
	live := *in.Live
	live.Inventory = nil
	in.Live = &live
	for _, o := range t.Compare(in).Objects {
		if o.Object.Identity() == ref.Identity() {
			return append(o.Fields, o.Ignored...)
		}
	}
	return nil
}

// along tells whether one path leads to the other.
func along(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Template is what of a live DaemonSet's pod template is not as Git says.
func Template(desired, live *appsv1.DaemonSet) []Field {
	all := clusters.Live{DaemonSets: []appsv1.DaemonSet{*live}}
	var out []Field
	for _, o := range (&Types{}).Compare(Input{DaemonSets: []appsv1.DaemonSet{*desired}, Live: &all}).Objects {
		for _, f := range o.Fields {
			if strings.HasPrefix(f.Path, "spec.template.") {
				out = append(out, f)
			}
		}
	}
	return out
}

// String is the difference in words: what is there, and what Git says.
func (f Field) String() string {
	switch f.Change {
	case Missing:
		return f.Path + " is not there, Git says " + quoted(f.Desired)
	case Added:
		return f.Path + " is " + quoted(f.Live) + " and not in Git"
	case Order:
		return f.Path + " is in another order than in Git"
	}
	return f.Path + " is " + quoted(f.Live) + ", Git says " + quoted(f.Desired)
}

func quoted(s string) string { return strconv.Quote(s) }
