package build

import (
	"fmt"
	"testing"
	"testing/fstest"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/sync/source"
)

// BenchmarkRender measures overlays of one base each: built anew, shared by a
// cluster of equal inputs, and a flat overlay of many files. Compare with
//
//	go test ./render/build -run '^$' -bench Render -count 10 | benchstat -
func BenchmarkRender(b *testing.B) {
	run := func(name string, files fstest.MapFS, overlay string, cluster func(i int) clusters.Cluster) {
		b.Run(name, func(b *testing.B) {
			r := New(Options{})
			defer r.Close()
			i := 0
			for b.Loop() {
				i++
				if _, err := r.Render(b.Context(), source.Artifact{Files: files}, fleetOf(overlay), cluster(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	other := func(i int) clusters.Cluster {
		return clusters.Cluster{Name: "c", Labels: map[string]string{"region": fmt.Sprintf("r%d", i)}}
	}
	equal := func(int) clusters.Cluster {
		return clusters.Cluster{Name: "c", Labels: map[string]string{"region": "eu"}}
	}
	run("built", sharing("agent:1"), "eu", other)
	run("shared", sharing("agent:1"), "eu", equal)
	for _, n := range []int{10, 100} {
		files := flat(n)
		files["kustomization.yaml"].Data = append(files["kustomization.yaml"].Data, "commonAnnotations: {region: \"${cluster.labels.region}\"}\n"...)
		run(fmt.Sprintf("flat/%d", n), files, ".", other)
	}
}
