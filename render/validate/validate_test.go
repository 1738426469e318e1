package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const agent = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default, labels: {app: agent}, annotations: {example.com/owner: sre}}
spec:
  minReadySeconds: 5
  selector: {matchLabels: {app: agent}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      serviceAccountName: agent
      nodeSelector: {kubernetes.io/os: linux}
      tolerations: [{operator: Exists, effect: NoSchedule}, {key: gpu, value: "yes", effect: NoExecute, tolerationSeconds: 60}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a, b]}]}]
      initContainers: [{name: init, image: "busybox:1"}]
      containers:
      - name: agent
        image: registry.example/agent:1
        args: [--log, info]
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: LEVEL, value: info}]
        ports: [{name: metrics, containerPort: 9100, hostPort: 9100, protocol: TCP}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        livenessProbe: {httpGet: {path: /healthz, port: metrics}, periodSeconds: 10}
        securityContext: {privileged: true, capabilities: {add: [NET_ADMIN]}}
        volumeMounts: [{name: root, mountPath: /host, readOnly: true}, {name: config, mountPath: /etc/agent}]
      volumes: [{name: root, hostPath: {path: /}}, {name: config, configMap: {name: agent, defaultMode: 420}}]
`

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// change sets the value at a path, whose numbers are indexes; nil deletes.
func change(u *unstructured.Unstructured, path string, value any) {
	keys := strings.Split(path, "/")
	var at any = u.Object
	for i, key := range keys {
		last := i == len(keys)-1
		switch v := at.(type) {
		case map[string]any:
			if !last {
				if v[key] == nil {
					v[key] = map[string]any{}
				}
				at = v[key]
				continue
			}
			if v[key] = value; value == nil {
				delete(v, key)
			}
		case []any:
			n, _ := strconv.Atoi(key)
			if !last {
				at = v[n]
				continue
			}
			v[n] = value
		}
	}
}

func judge(u *unstructured.Unstructured) (errs, warnings []string) {
	for _, f := range New().Objects([]unstructured.Unstructured{*u}) {
		line := f.Code + " " + f.Path
		if f.Warning {
			warnings = append(warnings, line)
		} else {
			errs = append(errs, line)
		}
	}
	return errs, warnings
}

const (
	podAt = "spec/template/spec/"
	cAt   = podAt + "containers/0/"
)

// mutation is one change of the good DaemonSet and what is wrong then: a code
// and a path, nothing where the API server takes it.
type mutation struct {
	path  string
	value any
	want  string
}

func list(items ...any) []any { return items }

func mapOf(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func mutations() map[string]mutation {
	n := func(i int64) any { return i }
	all := map[string]mutation{
		"nothing":                 {"metadata/labels/x", "y", ""},
		"unknown field":           {"spec/replicas", n(3), "UnknownField spec.replicas"},
		"unknown in template":     {podAt + "hostnetwork", true, "UnknownField spec.template.spec.hostnetwork"},
		"unknown in a container":  {cAt + "imagePullPolice", "Always", "UnknownField spec.template.spec.containers[0].imagePullPolice"},
		"unknown in metadata":     {"metadata/label", mapOf("a", "b"), "UnknownField metadata.label"},
		"text for a number":       {"spec/minReadySeconds", "5", "WrongType spec.minReadySeconds"},
		"number for text":         {cAt + "image", n(1), "WrongType spec.template.spec.containers[0].image"},
		"number as a label":       {"metadata/labels/app", n(1), "WrongType metadata.labels.app"},
		"boolean in env":          {cAt + "env/1/value", true, "WrongType spec.template.spec.containers[0].env[1].value"},
		"number in env":           {cAt + "env/1/value", n(1), "WrongType spec.template.spec.containers[0].env[1].value"},
		"list for a mapping":      {podAt + "nodeSelector", list("a"), "WrongType spec.template.spec.nodeSelector"},
		"mapping for a list":      {podAt + "containers", mapOf("name", "a"), "WrongType spec.template.spec.containers"},
		"text for a boolean":      {podAt + "hostNetwork", "true", "WrongType spec.template.spec.hostNetwork"},
		"bad quantity":            {cAt + "resources/requests/cpu", "lots", "WrongType spec.template.spec.containers[0].resources.requests.cpu"},
		"quantity as a number":    {cAt + "resources/requests/cpu", n(1), ""},
		"quantity as a fraction":  {cAt + "resources/requests/cpu", 0.5, ""},
		"fraction for a number":   {"spec/minReadySeconds", 1.5, "WrongType spec.minReadySeconds"},
		"null":                    {"spec/minReadySeconds", nil, ""},
		"negative ready":          {"spec/minReadySeconds", n(-1), "InvalidField spec.minReadySeconds"},
		"negative history":        {"spec/revisionHistoryLimit", n(-1), "InvalidField spec.revisionHistoryLimit"},
		"no selector":             {"spec/selector", nil, "InvalidField spec.selector"},
		"empty selector":          {"spec/selector", mapOf(), "InvalidField spec.selector"},
		"selector of others":      {"spec/selector/matchLabels", mapOf("app", "other"), "InvalidField spec.template.metadata.labels"},
		"bad selector value":      {"spec/selector/matchLabels", mapOf("app", "a b"), "InvalidField spec.selector.matchLabels"},
		"selector expression":     {"spec/selector/matchExpressions", list(mapOf("key", "app", "operator", "In", "values", list("agent"))), ""},
		"bad expression":          {"spec/selector/matchExpressions", list(mapOf("key", "app", "operator", "In")), "InvalidField spec.selector.matchExpressions[0].values"},
		"OnDelete":                {"spec/updateStrategy", mapOf("type", "OnDelete"), ""},
		"OnDelete with rubbish":   {"spec/updateStrategy", mapOf("type", "OnDelete", "rollingUpdate", mapOf("maxUnavailable", n(0))), ""},
		"unknown strategy":        {"spec/updateStrategy", mapOf("type", "Recreate"), "InvalidField spec.updateStrategy.type"},
		"surge":                   {"spec/updateStrategy/rollingUpdate", mapOf("maxUnavailable", n(0), "maxSurge", "20%"), ""},
		"surge without zero":      {"spec/updateStrategy/rollingUpdate", mapOf("maxSurge", n(1)), "InvalidField spec.updateStrategy.rollingUpdate.maxSurge"},
		"both zero":               {"spec/updateStrategy/rollingUpdate", mapOf("maxUnavailable", "0%", "maxSurge", n(0)), "InvalidField spec.updateStrategy.rollingUpdate.maxUnavailable"},
		"over a hundred":          {"spec/updateStrategy/rollingUpdate/maxUnavailable", "101%", "InvalidField spec.updateStrategy.rollingUpdate.maxUnavailable"},
		"no percentage":           {"spec/updateStrategy/rollingUpdate/maxUnavailable", "ten", "InvalidField spec.updateStrategy.rollingUpdate.maxUnavailable"},
		"negative budget":         {"spec/updateStrategy/rollingUpdate/maxUnavailable", n(-1), "InvalidField spec.updateStrategy.rollingUpdate.maxUnavailable"},
		"restart policy":          {podAt + "restartPolicy", "OnFailure", "InvalidField spec.template.spec.restartPolicy"},
		"deadline":                {podAt + "activeDeadlineSeconds", n(60), "InvalidField spec.template.spec.activeDeadlineSeconds"},
		"ephemeral":               {podAt + "ephemeralContainers", list(mapOf("name", "e", "image", "e")), "InvalidField spec.template.spec.ephemeralContainers"},
		"no containers":           {podAt + "containers", list(), "InvalidField spec.template.spec.containers"},
		"two of a name":           {podAt + "initContainers/0/name", "agent", "InvalidField spec.template.spec.containers[0].name"},
		"bad container name":      {cAt + "name", "Agent_1", "InvalidField spec.template.spec.containers[0].name"},
		"no image":                {cAt + "image", nil, "InvalidField spec.template.spec.containers[0].image"},
		"blank in image":          {cAt + "image", " img:1", ""},
		"port zero":               {cAt + "ports/0/containerPort", n(0), "InvalidField spec.template.spec.containers[0].ports[0].containerPort"},
		"port too high":           {cAt + "ports/0/containerPort", n(70000), "InvalidField spec.template.spec.containers[0].ports[0].containerPort"},
		"host port differs":       {cAt + "ports/0/hostPort", n(9101), "InvalidField spec.template.spec.containers[0].ports[0].hostPort"},
		"protocol":                {cAt + "ports/0/protocol", "tcp", "InvalidField spec.template.spec.containers[0].ports[0].protocol"},
		"port name":               {cAt + "ports/0/name", "much-too-long-a-name", "InvalidField spec.template.spec.containers[0].ports[0].name"},
		"env without a name":      {cAt + "env/1/name", nil, "InvalidField spec.template.spec.containers[0].env[1].name"},
		"env value and from":      {cAt + "env/0/value", "x", "InvalidField spec.template.spec.containers[0].env[0].valueFrom"},
		"env name with a dot":     {cAt + "env/1/name", "a.b", ""},
		"env name with an equals": {cAt + "env/1/name", "a=b", "InvalidField spec.template.spec.containers[0].env[1].name"},
		"mount of nothing":        {cAt + "volumeMounts/0/name", "gone", "InvalidField spec.template.spec.containers[0].volumeMounts[0].name"},
		"mount twice":             {cAt + "volumeMounts/0/mountPath", "/etc/agent", "InvalidField spec.template.spec.containers[0].volumeMounts[1].mountPath"},
		"mount nowhere":           {cAt + "volumeMounts/0/mountPath", nil, "InvalidField spec.template.spec.containers[0].volumeMounts[0].mountPath"},
		"sub path out":            {cAt + "volumeMounts/0/subPath", "../x", "InvalidField spec.template.spec.containers[0].volumeMounts[0].subPath"},
		"two volumes":             {podAt + "volumes/1/name", "root", "InvalidField spec.template.spec.volumes[1].name"},
		"volume name":             {podAt + "volumes/1/name", "Config", "InvalidField spec.template.spec.volumes[1].name"},
		"host path up":            {podAt + "volumes/0/hostPath/path", "/a/../b", "InvalidField spec.template.spec.volumes[0].hostPath.path"},
		"config without a name":   {podAt + "volumes/1/configMap/name", nil, "InvalidField spec.template.spec.volumes[1].configMap.name"},
		"node selector":           {podAt + "nodeSelector", mapOf("a b", "c"), "InvalidField spec.template.spec.nodeSelector"},
		"tolerate everything":     {podAt + "tolerations/0", mapOf("operator", "Exists"), ""},
		"toleration no key":       {podAt + "tolerations/0", mapOf("operator", "Equal", "value", "x"), "InvalidField spec.template.spec.tolerations[0].operator"},
		"toleration operator":     {podAt + "tolerations/0", mapOf("key", "a", "operator", "Is"), "InvalidField spec.template.spec.tolerations[0].operator"},
		"toleration exists value": {podAt + "tolerations/0", mapOf("key", "a", "operator", "Exists", "value", "x"), "InvalidField spec.template.spec.tolerations[0].operator"},
		"toleration seconds":      {podAt + "tolerations/1/effect", "NoSchedule", "InvalidField spec.template.spec.tolerations[1].effect"},
		"toleration effect":       {podAt + "tolerations/0/effect", "NoRun", "InvalidField spec.template.spec.tolerations[0].effect"},
		"toleration key":          {podAt + "tolerations/1/key", "a b", "InvalidField spec.template.spec.tolerations[1].key"},
		"no terms":                {podAt + "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms", list(), "InvalidField spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"},
		"term operator":           {podAt + "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/operator", "Is", "InvalidField spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator"},
		"term exists":             {podAt + "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/operator", "Exists", "InvalidField spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"},
		"term greater than two":   {podAt + "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/operator", "Gt", "InvalidField spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"},
		"probe without a handler": {cAt + "livenessProbe", mapOf("periodSeconds", n(1)), "InvalidField spec.template.spec.containers[0].livenessProbe"},
		"probe with two":          {cAt + "livenessProbe/exec", mapOf("command", list("x")), "InvalidField spec.template.spec.containers[0].livenessProbe"},
		"probe negative":          {cAt + "livenessProbe/periodSeconds", n(-1), "InvalidField spec.template.spec.containers[0].livenessProbe.periodSeconds"},
		"request over limit":      {cAt + "resources/requests/memory", "256Mi", "InvalidField spec.template.spec.containers[0].resources.requests[memory]"},
		"negative request":        {cAt + "resources/requests/cpu", "-1", "InvalidField spec.template.spec.containers[0].resources.requests[cpu]"},
		"grace negative":          {podAt + "terminationGracePeriodSeconds", n(-1), ""},
		"service account":         {podAt + "serviceAccountName", "Agent!", "InvalidField spec.template.spec.serviceAccountName"},
		"name":                    {"metadata/name", "Agent_1", "InvalidField metadata.name"},
		"label value":             {"metadata/labels/app", "a b", "InvalidField metadata.labels"},
		"annotation key":          {"metadata/annotations/a b", "c", "InvalidField metadata.annotations"},
		"template label":          {"spec/template/metadata/labels/x y", "z", "InvalidField spec.template.metadata.labels"},
		"status":                  {"status", mapOf("numberReady", n(1)), ""},
	}
	maps.Copy(all, shapes())
	return all
}

func mutated(t testing.TB, m mutation) *unstructured.Unstructured {
	u := object(t, agent)
	change(u, m.path, m.value)
	return u
}

func TestMutations(t *testing.T) {
	for name, m := range mutations() {
		t.Run(name, func(t *testing.T) {
			got, _ := judge(mutated(t, m))
			if m.want == "" && len(got) > 0 || m.want != "" && !slices.Contains(got, m.want) {
				t.Errorf("got %q, want %q", got, m.want)
			}
		})
	}
}

// Every fault is found, not only the first.
func TestAllAtOnce(t *testing.T) {
	u := object(t, agent)
	change(u, "spec/replicas", int64(1))
	change(u, cAt+"image", int64(1))
	change(u, "metadata/name", "A")
	got, _ := judge(u)
	if want := []string{"InvalidField metadata.name", "UnknownField spec.replicas", "WrongType spec.template.spec.containers[0].image"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWarnings(t *testing.T) {
	for name, m := range map[string]mutation{
		"env twice":  {cAt + "env/1/name", "NODE", "SuspiciousField spec.template.spec.containers[0].env[1].name"},
		"blank":      {cAt + "image", " img:1", "SuspiciousField spec.template.spec.containers[0].image"},
		"grace":      {podAt + "terminationGracePeriodSeconds", int64(-1), "SuspiciousField spec.template.spec.terminationGracePeriodSeconds"},
		"not root":   {cAt + "securityContext", mapOf("runAsNonRoot", true, "runAsUser", int64(0)), "SuspiciousField spec.template.spec.containers[0].securityContext.runAsUser"},
		"greater 7a": {podAt + "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0", mapOf("key", "a", "operator", "Gt", "values", list("7a")), "SuspiciousField spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"},
	} {
		errs, got := judge(mutated(t, m))
		if len(errs) > 0 || len(got) != 1 || got[0] != m.want {
			t.Errorf("%s: got errors %q, warnings %q", name, errs, got)
		}
	}
}

func TestKinds(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"custom":          {"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: Any_Name}\nspec: {a: [1]}\n", ""},
		"definition":      {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n", ""},
		"beta of ours":    {"apiVersion: apps/v1beta2\nkind: DaemonSet\nmetadata: {name: a}\n", "UnknownKind apiVersion"},
		"extensions":      {"apiVersion: extensions/v1beta1\nkind: DaemonSet\nmetadata: {name: a}\n", "UnknownKind apiVersion"},
		"no such kind":    {"apiVersion: apps/v1\nkind: DaemonSets\nmetadata: {name: a}\n", "UnknownKind apiVersion"},
		"old budget":      {"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n", "UnknownKind apiVersion"},
		"role name":       {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:a'}\nrules: []\n", ""},
		"namespaced role": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a, namespace: b}\nrules: []\n", "InvalidField metadata.namespace"},
		"config number":   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {num: 1}\n", "WrongType data.num"},
		"config key":      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {'a b': x}\n", "InvalidField data"},
		"secret base64":   {"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ndata: {k: CANARY!}\n", "WrongType data.k"},
		"sops":            {"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ndata: {k: 'ENC[AES256_GCM,data:x]'}\nsops: {mac: 'ENC[x]', lastmodified: t}\n", ""},
		"not sops":        {"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nsops: {x: y}\n", "UnknownField sops"},
		"service":         {"apiVersion: v1\nkind: Service\nmetadata: {name: 1a, namespace: b}\nspec: {ports: [{port: 80}]}\n", "InvalidField metadata.name"},
	} {
		u := object(t, tc.text)
		got, _ := judge(u)
		if strings.Join(got, "\n") != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		for _, f := range New().Objects([]unstructured.Unstructured{*u}) {
			if strings.Contains(f.Message, "CANARY") {
				t.Errorf("%s: %s", name, f.Message)
			}
		}
	}
}

// What upstream's own validation said of the recorded DaemonSets.
func TestRecorded(t *testing.T) {
	data, err := os.ReadFile("../../controller/coverage/testdata/coverage.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			ID         string
			DaemonSet  map[string]any
			APIAccepts struct {
				DaemonSet       bool
				DaemonSetErrors []string
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Cases) != 109 {
		t.Fatalf("%v, %d cases", err, len(file.Cases))
	}
	refused := 0
	for _, c := range file.Cases {
		got, _ := judge(&unstructured.Unstructured{Object: integers(c.DaemonSet).(map[string]any)})
		// Lt and Gt of tolerations are behind a gate, which only a cluster knows.
		if gated := strings.Contains(strings.Join(c.APIAccepts.DaemonSetErrors, ""), `"Equal", "Exists", "Lt", "Gt"`); !gated && (len(got) == 0) != c.APIAccepts.DaemonSet {
			t.Errorf("%s: upstream says %q, we say %q", c.ID, c.APIAccepts.DaemonSetErrors, got)
		}
		if !c.APIAccepts.DaemonSet {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no recorded DaemonSet is refused: the test proves half of it")
	}
}

// integers makes whole numbers of encoding/json's fractions.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func FuzzObjects(f *testing.F) {
	f.Add([]byte(agent))
	f.Add([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: 1, namespace: []}\ndata: []\n"))
	v := New()
	f.Fuzz(func(t *testing.T, text []byte) {
		var m map[string]any
		if len(text) > 1<<16 || yaml.Unmarshal(text, &m) != nil || m == nil {
			return
		}
		all := []unstructured.Unstructured{{Object: integers(m).(map[string]any)}}
		if a, b := fmt.Sprint(v.Objects(all)), fmt.Sprint(v.Objects(all)); a != b {
			t.Errorf("%s\n%s", a, b)
		}
	})
}
