package validate

// shapes are what well-known agents look like: the API server takes them all.
func shapes() map[string]mutation {
	n := func(i int64) any { return i }
	affinity := podAt + "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0"
	probe := func(more ...any) any {
		return mapOf(append([]any{"httpGet", mapOf("path", "/", "port", n(9100))}, more...)...)
	}
	return map[string]mutation{
		"sidecar":              {podAt + "initContainers/0", mapOf("name", "init", "image", "i", "restartPolicy", "Always", "startupProbe", probe(), "lifecycle", mapOf("preStop", mapOf("sleep", mapOf("seconds", n(5)))), "ports", list(mapOf("containerPort", n(80)))), ""},
		"init host port":       {podAt + "initContainers/0", mapOf("name", "init", "image", "i", "ports", list(mapOf("containerPort", n(80), "hostPort", n(81)))), ""},
		"ready after two":      {cAt + "readinessProbe", probe("successThreshold", n(2)), ""},
		"probe grace":          {cAt + "livenessProbe", probe("terminationGracePeriodSeconds", n(5)), ""},
		"probe grpc":           {cAt + "livenessProbe", mapOf("grpc", mapOf("port", n(9100))), ""},
		"bidirectional":        {cAt + "volumeMounts/0", mapOf("name", "root", "mountPath", "/host", "mountPropagation", "Bidirectional"), ""},
		"host to container":    {cAt + "volumeMounts/0", mapOf("name", "root", "mountPath", "/host", "mountPropagation", "HostToContainer", "readOnly", true), ""},
		"sub path expression":  {cAt + "volumeMounts/0", mapOf("name", "root", "mountPath", "/host", "subPathExpr", "$(NODE)"), ""},
		"empty dir":            {podAt + "volumes/0", mapOf("name", "root", "emptyDir", mapOf("medium", "Memory", "sizeLimit", "64Mi")), ""},
		"projected":            {podAt + "volumes/0", mapOf("name", "root", "projected", mapOf("defaultMode", n(420), "sources", list(mapOf("serviceAccountToken", mapOf("path", "token", "expirationSeconds", n(3600), "audience", "x")), mapOf("configMap", mapOf("name", "kube-root-ca.crt")), mapOf("downwardAPI", mapOf("items", list(mapOf("path", "ns", "fieldRef", mapOf("fieldPath", "metadata.namespace")))))))), ""},
		"no source":            {podAt + "volumes/0", mapOf("name", "root"), ""},
		"host path type":       {podAt + "volumes/0/hostPath", mapOf("path", "/run/xtables.lock", "type", "FileOrCreate"), ""},
		"host path of no type": {podAt + "volumes/0/hostPath", mapOf("path", "/", "type", ""), ""},
		"host path dots":       {podAt + "volumes/0/hostPath/path", "/var/lib/..data", ""},
		"gpu":                  {cAt + "resources", mapOf("limits", mapOf("nvidia.com/gpu", n(1))), ""},
		"resources of the pod": {podAt + "resources", mapOf("requests", mapOf("cpu", "1")), ""},
		"port ranges":          {cAt + "ports", list(mapOf("containerPort", n(53), "hostPort", n(53), "protocol", "UDP"), mapOf("containerPort", n(53), "hostPort", n(53), "protocol", "TCP")), ""},
		"any taint":            {podAt + "tolerations", list(mapOf("operator", "Exists"), mapOf("effect", "NoExecute", "operator", "Exists"), mapOf("key", "CriticalAddonsOnly", "operator", "Exists"), mapOf("key", "node-role.kubernetes.io/control-plane", "effect", "NoSchedule")), ""},
		"fargate":              {affinity, mapOf("matchExpressions", list(mapOf("key", "eks.amazonaws.com/compute-type", "operator", "NotIn", "values", list("fargate")), mapOf("key", "type", "operator", "NotIn", "values", list("virtual-kubelet")))), ""},
		"empty term":           {affinity, mapOf(), ""},
		"match fields":         {affinity, mapOf("matchFields", list(mapOf("key", "metadata.name", "operator", "In", "values", list("node-1")))), ""},
		"preferred":            {podAt + "affinity", mapOf("nodeAffinity", mapOf("preferredDuringSchedulingIgnoredDuringExecution", list(mapOf("weight", n(1), "preference", mapOf("matchExpressions", list(mapOf("key", "a", "operator", "Exists"))))))), ""},
		"security":             {cAt + "securityContext", mapOf("allowPrivilegeEscalation", false, "readOnlyRootFilesystem", true, "runAsNonRoot", true, "runAsUser", n(65534), "seccompProfile", mapOf("type", "RuntimeDefault"), "appArmorProfile", mapOf("type", "Unconfined"), "capabilities", mapOf("drop", list("ALL"), "add", list("NET_BIND_SERVICE"))), ""},
		"seLinux":              {cAt + "securityContext", mapOf("privileged", true, "seLinuxOptions", mapOf("level", "s0", "type", "spc_t")), ""},
		"env from":             {cAt + "envFrom", list(mapOf("configMapRef", mapOf("name", "a", "optional", true)), mapOf("prefix", "X_", "secretRef", mapOf("name", "b"))), ""},
		"env resources":        {cAt + "env", list(mapOf("name", "GOMEMLIMIT", "valueFrom", mapOf("resourceFieldRef", mapOf("resource", "limits.memory", "divisor", "1"))), mapOf("name", "IP", "valueFrom", mapOf("fieldRef", mapOf("apiVersion", "v1", "fieldPath", "status.hostIP")))), ""},
		"message policy":       {cAt + "terminationMessagePolicy", "FallbackToLogsOnError", ""},
		"lifecycle":            {cAt + "lifecycle", mapOf("postStart", mapOf("exec", mapOf("command", list("/x"))), "preStop", mapOf("httpGet", mapOf("path", "/", "port", "metrics"))), ""},
		"dns":                  {podAt + "dnsPolicy", "ClusterFirstWithHostNet", ""},
		"host aliases":         {podAt + "hostAliases", list(mapOf("ip", "10.0.0.1", "hostnames", list("a.b"))), ""},
		"host pid":             {podAt + "hostPID", true, ""},
		"shared processes":     {podAt + "shareProcessNamespace", true, ""},
		"spread":               {podAt + "topologySpreadConstraints", list(mapOf("maxSkew", n(1), "topologyKey", "kubernetes.io/hostname", "whenUnsatisfiable", "ScheduleAnyway", "labelSelector", mapOf("matchLabels", mapOf("app", "agent")))), ""},
		"old annotations":      {"spec/template/metadata/annotations", mapOf("scheduler.alpha.kubernetes.io/critical-pod", "", "prometheus.io/scrape", "true", "container.apparmor.security.beta.kubernetes.io/agent", "unconfined"), ""},
		"template name":        {"spec/template/metadata/name", "Any_Name", ""},
		"template time":        {"spec/template/metadata/creationTimestamp", nil, ""},
		"long name":            {"metadata/name", "a-name-of-more-than-sixty-three-letters-which-no-label-value-may-have-at-all", ""},
		"os":                   {podAt + "os", mapOf("name", "linux"), ""},
		"pull secrets":         {podAt + "imagePullSecrets", list(mapOf("name", "regcred")), ""},
		"runtime class":        {podAt + "runtimeClassName", "nvidia", ""},
		"priority":             {podAt + "priorityClassName", "system-node-critical", ""},
		"grace zero":           {podAt + "terminationGracePeriodSeconds", n(0), ""},
		"csi":                  {podAt + "volumes/0", mapOf("name", "root", "csi", mapOf("driver", "csi.example.com", "readOnly", true, "volumeAttributes", mapOf("a", "b"))), ""},
		"downward":             {podAt + "volumes/0", mapOf("name", "root", "downwardAPI", mapOf("items", list(mapOf("path", "labels", "fieldRef", mapOf("fieldPath", "metadata.labels"))))), ""},
		"image volume":         {podAt + "volumes/0", mapOf("name", "root", "image", mapOf("reference", "a/b:1", "pullPolicy", "IfNotPresent")), ""},
		"items":                {podAt + "volumes/1/configMap", mapOf("name", "agent", "items", list(mapOf("key", "a", "path", "x/y"))), ""},
	}
}
