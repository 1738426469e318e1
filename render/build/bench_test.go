package build

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"rollcall.dev/rollcall/clusters"
	"rollcall.dev/rollcall/sync/source"
)

const (
	clusterCount = 1000
	overlayCount = 40
	baseCount    = 6 // DaemonSets with a ConfigMap, a ServiceAccount and a Service each
)

// BenchmarkRender renders 1,000 clusters over 40 overlays of one base: at first,
// again after a commit that touches one overlay, and again when nothing changed;
// beside 1,000 runs of kustomize in a row over the same files in memory, which
// does not scan what it reads, and gives text. Objects must be equal before
// anything is timed.
func BenchmarkRender(b *testing.B) {
	files := fleetFiles()
	began := time.Now()
	for i := range clusterCount {
		alone(b, files, fmt.Sprintf("overlays/o%02d", i%overlayCount))
	}
	theirs := time.Since(began)
	for b.Loop() {
		r := New(Options{})
		began = time.Now()
		first := renderAll(b, r, files)
		cold := time.Since(began)
		for i := range overlayCount {
			if want := alone(b, files, fmt.Sprintf("overlays/o%02d", i)); first[i] != want {
				b.Fatalf("overlay %d: %d objects, kustomize has %d", i, first[i], want)
			}
		}
		changed := maps.Clone(files)
		changed["overlays/o07/patch.yaml"] = &fstest.MapFile{Data: []byte(patchOf("changed"))}
		began = time.Now()
		renderAll(b, r, changed)
		one := time.Since(began)
		began = time.Now()
		renderAll(b, r, changed)
		none := time.Since(began)
		stats := r.Stats()
		r.Close()
		fmt.Printf("ratio %.0f× (first): %d clusters over %d overlays %s; kustomize in a row %s; %d builds\n",
			float64(theirs)/float64(cold), clusterCount, overlayCount, cold.Round(time.Millisecond), theirs.Round(time.Millisecond), stats.Built)
		fmt.Printf("ratio %.0f× (one overlay changed): %s, %.1f %% of the first; ratio %.0f× (nothing changed): %s\n",
			float64(theirs)/float64(one), one.Round(10*time.Microsecond), 100*float64(one)/float64(cold), float64(theirs)/float64(none), none.Round(10*time.Microsecond))
	}
}

// committed is files whose hashes are known, as those of a commit are.
type committed struct {
	fstest.MapFS
	hashes map[string]string
}

func commit(files fstest.MapFS) committed {
	c := committed{files, map[string]string{}}
	for name := range files {
		h, err := hashOf(files, name)
		if err != nil {
			panic(err)
		}
		c.hashes[name] = h
	}
	return c
}

// Hash is known without reading.
func (c committed) Hash(name string) (string, error) {
	if name == "." {
		return "root", nil
	}
	return c.hashes[name], nil
}

func renderAll(b *testing.B, r *Renderer, files fstest.MapFS) []int {
	a := source.Artifact{Files: commit(files), Revision: source.Revision{Commit: string(files["overlays/o07/patch.yaml"].Data)}}
	counts := make([]int, clusterCount)
	f := clusters.Fleet{Targets: []clusters.Target{{Name: "t", Overlay: "overlays/${cluster.labels.overlay}"}}}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 256)
	for i := range clusterCount {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			d, err := r.Render(b.Context(), a, f, clusters.Cluster{Name: fmt.Sprintf("c%d", i), Labels: map[string]string{"overlay": fmt.Sprintf("o%02d", i%overlayCount)}})
			if err != nil {
				b.Error(err)
			}
			counts[i] = len(d.Objects)
		})
	}
	wg.Wait()
	return counts
}

// alone is what a tool does for a cluster that knows nothing of the others.
func alone(b *testing.B, files fstest.MapFS, overlay string) int {
	disk := filesys.MakeFsInMemory()
	for name, f := range files {
		if err := disk.WriteFile("/"+name, f.Data); err != nil {
			b.Fatal(err)
		}
	}
	o := krusty.MakeDefaultOptions()
	o.PluginConfig = types.DisabledPluginConfig()
	m, err := krusty.MakeKustomizer(o).Run(disk, "/"+overlay)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := m.AsYaml(); err != nil {
		b.Fatal(err)
	}
	return m.Size()
}

func patchOf(value string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent-0, namespace: obs}\nspec: {template: {spec: {containers: [{name: c, env: [{name: REGION, value: %s}]}]}}}\n", value)
}

func fleetFiles() fstest.MapFS {
	files := fstest.MapFS{}
	resources := ""
	for i := range baseCount {
		name := fmt.Sprintf("agent-%d", i)
		files["base/"+name+".yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(agentText, name))}
		resources += name + ".yaml, "
	}
	files["base/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [" + resources + "]\n")}
	for i := range overlayCount {
		dir := fmt.Sprintf("overlays/o%02d/", i)
		files[dir+"kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [../../base]\npatches: [{path: patch.yaml}]\nlabels: [{pairs: {overlay: o" + fmt.Sprint(i) + "}}]\nimages: [{name: registry.example/agent, newTag: \"1." + fmt.Sprint(i) + "\"}]\n")}
		files[dir+"patch.yaml"] = &fstest.MapFile{Data: []byte(patchOf("r" + fmt.Sprint(i)))}
	}
	return files
}

const agentText = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s, namespace: obs, labels: {app: %[1]s}}
spec:
  selector: {matchLabels: {app: %[1]s}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 10%%}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      serviceAccountName: %[1]s
      tolerations: [{operator: Exists, effect: NoSchedule}]
      containers:
      - name: c
        image: registry.example/agent:1
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        ports: [{name: metrics, containerPort: 9100}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        volumeMounts: [{name: config, mountPath: /etc/agent}, {name: root, mountPath: /host, readOnly: true}]
      volumes: [{name: config, configMap: {name: %[1]s}}, {name: root, hostPath: {path: /}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s, namespace: obs}
data: {agent.conf: "level = info\nsink = central\n"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: obs}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: obs}
spec: {clusterIP: None, selector: {app: %[1]s}, ports: [{name: metrics, port: 9100}]}
`
