package report

// Severity of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

func (s Severity) rank() int {
	return map[Severity]int{Error: 0, Warning: 1, Info: 2}[s]
}

// Above tells whether it is more severe than another.
func (s Severity) Above(other Severity) bool { return s.rank() < other.rank() }

// Code is a reason code with what it means and what to do about it.
type Code struct {
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Meaning  string   `json:"meaning"`
	Remedy   string   `json:"remedy"`
}

// Codes is the table of all codes, in the order in which `rollcall why --codes`
// prints it. A waiting reason or status.reason of the kubelet that is not here
// passes through in the kubelet's words and is an error.
var Codes = []Code{
	{"NodeNameMismatch", Warning, "the template names another node", "remove spec.template.spec.nodeName, or delete the pod that was left behind"},
	{"NodeSelectorMismatch", Warning, "a nodeSelector pair is not a label of the node", "label the node, or change the nodeSelector"},
	{"NodeAffinityMismatch", Warning, "no required node affinity term matches the node", "label the node, or change the affinity"},
	{"AffinityUnparseable", Error, "the API accepts an affinity term that nothing can match", "write an integer where Gt or Lt stands, and check operators and values"},
	{"UntoleratedTaint", Warning, "a taint of the node is not tolerated by the template", "tolerate the taint, or remove it from the node"},
	{"VirtualNode", Info, "the node stands for capacity without a machine", "nothing: exclude it by affinity if its waiting pod disturbs"},
	{"NodeLeaving", Info, "the node is being deleted or drained for deletion", "nothing"},
	{"NodeNotReady", Error, "the kubelet says that the node is not ready", "look at the node's Ready condition and its kubelet"},
	{"NodeUnreachable", Error, "the kubelet is not heard from: what runs there is not known", "check the machine, its network and its kubelet"},
	{"HeartbeatStale", Error, "the node says Ready, and its kubelet has not renewed that for long", "check the machine and the control plane's node controller"},
	{"NotAttempted", Error, "the node should run a pod and nobody tried to create one", "check that the DaemonSet controller runs: kubectl -n kube-system get lease kube-controller-manager"},
	{"FailedCreate", Error, "the API server refused to create the pod", "raise the quota, or mend the admission rule that the message names"},
	{"DeletedAtOnce", Error, "pods are created and somebody else deletes them", "look for a webhook, a NoExecute taint with tolerationSeconds, or an admission that changes the pod's selector"},
	{"FailedScheduling", Error, "the pod is pinned to the node and does not fit there", "free the resource or port that the message names, or give the pod a priority class"},
	{"ImagePullBackOff", Error, "the kubelet cannot pull the image", "check the image's name, the registry and the pull secret"},
	{"CrashLoopBackOff", Error, "a container ends again and again", "read its log: kubectl logs --previous"},
	{"CreateContainerConfigError", Error, "a ConfigMap, Secret or setting of a container is missing", "create what the message names"},
	{"ContainerCreating", Warning, "the pod is bound and its containers do not run yet", "look at the pod's events: volumes, network, image"},
	{"ReadinessProbe", Warning, "a container runs and is not ready", "look at its readiness probe and its log"},
	{"MinReadySeconds", Info, "the pod is ready, not yet for long enough", "wait"},
	{"Evicted", Error, "the kubelet evicted the pod", "look at the node's memory and disk pressure"},
	{"FailedPodBackOff", Warning, "failed pods are deleted and created again with growing delays", "look at why they fail"},
	{"Completed", Warning, "the daemon pod ended, which a daemon should not", "read its log"},
	{"Failed", Error, "the pod failed", "look at the pod's status"},
	{"Terminating", Info, "the pod is being deleted", "wait"},
	{"StuckTerminating", Warning, "the pod should have been gone long ago", "check the node's kubelet, or the pod's finalizers"},
	{"RollingUpdate", Info, "a rolling update is under way, within its budget", "wait"},
	{"RolloutBlocked", Warning, "unavailable nodes use up maxUnavailable, so that the update stands still", "mend or remove the nodes it names, or raise maxUnavailable"},
	{"SurgeSlotHeld", Warning, "nodes that cannot start the new pod hold the surge slots", "mend the nodes it names; a host port and maxSurge do not go together"},
	{"WaitingForDelete", Warning, "updateStrategy OnDelete: old pods stay until somebody deletes them", "delete the pods node by node"},
	{"ExtraPod", Warning, "more pods on a node than a surge explains", "the controller deletes all but one: see whether it runs"},
	{"ForeignPod", Info, "a pod of another owner matches the selector", "give the two different labels"},
	{"OrphanPod", Warning, "a pod without this owner matches the selector", "delete it, or let the controller adopt it"},
	{"NodeGone", Info, "a pod of a node that no longer exists", "the pod garbage collector deletes it within two minutes"},
	{"StatusStale", Info, "the DaemonSet's own counters disagree with nodes and pods", "believe the nodes and pods; look again in a minute"},
	{"ControllerStalled", Error, "the DaemonSet controller has not seen the current generation, or tries nothing for nodes that want a pod", "check that the kube-controller-manager runs: kubectl -n kube-system get lease kube-controller-manager"},
	{"NoEligibleNodes", Info, "no node is meant to run the DaemonSet", "check its nodeSelector and affinity, unless that is meant"},
	{"CoverageLost", Error, "nodes that were intended no longer are: by a taint, a changed template or a label", "undo the change, or accept it: an exception with code CoverageLost"},
	{"StartupTaintStays", Error, "the taint of a starting node was not removed in time, and keeps the pod away", "look at the agent that removes it (a CNI, a CSI driver, a cloud controller) on this node"},
	{"AdmissionDrift", Error, "admission changed the pod so that it cannot run on its node", "mend the namespace's node selector or toleration whitelist, the RuntimeClass or the webhook, or say in the template what it says"},
	{"BlanketToleration", Warning, "a toleration without a key makes virtual nodes wanted", "leave virtual nodes out by node affinity"},
	{"MixedOS", Warning, "it is meant for Linux and Windows nodes alike", "select one with nodeSelector kubernetes.io/os"},
	{"HostPortSurge", Warning, "maxSurge with a port of the node: the pods wait for each other", "use maxUnavailable instead of maxSurge"},
	{"NotReadyNotTolerated", Warning, "a network plug-in that cannot start on a node that is not ready", "tolerate node.kubernetes.io/not-ready with operator Exists"},
	{"TolerationSeconds", Warning, "the pod is evicted after a time and created again at once", "leave tolerationSeconds out"},
	{"NoPriorityClass", Info, "an agent that must run has no priority class", "give it a priorityClassName such as system-node-critical"},
	{"LowPriority", Warning, "a pod waits on a full node, and has no priority class to displace others", "give it a priorityClassName such as system-node-critical"},
	{"RuntimeClassUnseen", Info, "a pod waits, and the template's RuntimeClass may have placement that the controller does not see", "repeat the class's nodeSelector and tolerations in the template"},
	{"AgentAbsent", Error, "an agent of the fleet has no DaemonSet in the cluster", "deploy it, or take the cluster out of the agent's clusters"},
	{"AgentUncovered", Error, "nodes that an agent must cover are left out by all of its DaemonSets", "tolerate or select them, or take them out of the agent's nodes"},
	{"ExceptionExpired", Warning, "an exception is over, and excuses nothing any more", "mend the gap, or give the exception a new end"},
	{"ExceptionUnused", Info, "an exception excuses nothing", "remove it"},
	{"InvalidAnnotation", Warning, "an annotation rollcall.dev/… cannot be read", "write it as the message shows"},
	{"ProgressDeadlineExceeded", Warning, "a rolling update stands still although its budget is free", "check that the kube-controller-manager runs"},
	{"AgentUnmatched", Warning, "an agent of the fleet matches no cluster", "check the names and labels of its clusters"},
	{"DaemonSetAbsent", Error, "the DaemonSet is in Git and not in the cluster", "apply it, or take the cluster out of the target"},
	{"Modified", Warning, "a field of a live object is not as Git says", "apply Git's version, or commit the live one"},
	{"ObjectAbsent", Error, "an object that a DaemonSet may need is in Git and not in the cluster", "apply it, or take it out of the overlay"},
	{"Orphaned", Warning, "an object that was applied for the fleet is no longer in Git", "prune it: rollcall plan shows it, or delete it by hand"},
	{"Refused", Error, "the API server would not take an object as Git has it", "mend what the message names; rollcall render --validate finds most of it beforehand"},
	{"UnknownField", Warning, "Git has a field that the API does not know, and drops", "check its spelling, or the version of the API"},
	{"Held", Warning, "rollcall may make a change and does not, for the reason that the message begins with", "do what the message says; rollcall plan shows each change"},
	{"NotCompared", Info, "objects of Git could not be compared with live ones", "grant get on them (rollcall rbac --tier drift), or record them"},
	{"IgnoreUnused", Info, "a rule of what is no drift ignores nothing", "remove it"},
	{"TierMissing", Info, "an optional resource could not be read, so that some reasons are blank", "grant what the message names (list; get for leases), or record it"},
	{"Unreachable", Error, "the cluster could not be reached", "check the server's address, network and certificate"},
	{"Denied", Error, "the cluster refused the credential or a permission", "grant get and list on what the message names"},
	{"ObservationFailed", Error, "the cluster could not be read", "see the message"},
	{"DuplicateIdentity", Error, "two registrations are one cluster", "remove one, or set identity in a clone's Cluster file"},
	{"InvalidCluster", Error, "a Cluster file or a hub's Secret is wrong, or registers a cluster without its credential", "mend the file or Secret and field that the message names"},
	{"ClusterUnmatched", Warning, "no target of the fleet matches the cluster", "add a target, or label the cluster"},
	{"TargetUnmatched", Warning, "a target of the fleet matches no cluster", "check its names and labels"},
	{"RenderEmpty", Error, "an overlay renders to nothing, or to no DaemonSet", "check its resources"},
	{"RenderFailed", Error, "an overlay could not be rendered", "see the message"},
	{"RemoteReference", Error, "an overlay names something outside the repository", "vendor it, or point the target at a folder rendered elsewhere"},
	{"UndefinedSubstitution", Error, "a ${cluster.…} or ${fleet.…} has no value", "label the cluster, or write $${cluster. for a literal"},
	{"NoNamespace", Error, "a namespaced object has no namespace", "set namespace in the kustomization or in the target"},
	{"PatchMatchesNothing", Warning, "a patch of an overlay matches no object", "check its target's name: it is a regular expression over names before prefixes and suffixes"},
	{"PatchEmpty", Warning, "a patch of an overlay changes nothing", "remove it"},
	{"PatchMatchesSeveral", Info, "the name of a patch's target is a regular expression and selects several objects", "write the whole name, if one is meant"},
	{"DaemonSetDropped", Warning, "an overlay drops a DaemonSet that its files declare", "remove the patch that deletes it, or keep the file out of the base"},
	{"ObjectDropped", Info, "an overlay drops an object that its files declare", "remove the patch that deletes it, or keep the file out of the base"},
	{"TolerationsDropped", Warning, "an overlay drops tolerations that the base has", "repeat them in the patch, or add one by a JSON patch"},
	{"SelectorRelabelled", Warning, "an overlay adds labels to a DaemonSet's selector, which is immutable", "use labels in place of commonLabels and includeSelectors"},
	{"TemplateRelabelled", Info, "an overlay adds labels to a DaemonSet's pods", "know that a change of them rolls all pods"},
	{"DaemonSetRenamed", Info, "an overlay gives a DaemonSet another name than its file", "delete the one of the old name where it was applied"},
	{"DeprecatedField", Info, "a kustomization uses a field that kustomize will drop", "run kustomize edit fix"},
	{"InvalidManifest", Error, "a manifest is not valid", "mend the file and field that the message names"},
	{"OverBudget", Error, "an overlay is larger than a build may be", "split it"},
	{"PathNotFound", Error, "a path is not in the repository", "check the path"},
	{"Unsupported", Error, "an overlay uses what rollcall does not run", "render it elsewhere and point the target at the result"},
	{"SourceStale", Error, "the source could not be fetched, or its newest commit is not trusted: the last good commit is judged", "see the message"},
	{"SourceRewritten", Warning, "the ref was moved to another history: the commit judged before is not behind it", "ask who pushed by force, or moved the tag"},
	{"ObservationStale", Warning, "the snapshot of a recorded cluster is older than the policy's staleAfter", "see that rollcall record --push runs there"},
	{"InsecureTLS", Warning, "the certificate of a cluster's API server is not verified", "put the cluster's CA into the kubeconfig and remove insecure-skip-tls-verify"},
	{"CredentialExpires", Warning, "the credential of a cluster ends within 14 days, or a fifth of its life", "renew it: rollcall cluster grant NAME"},
	{"CredentialCanWrite", Info, "a credential may change what the policy does not allow", "give rollcall one of its own: rollcall cluster grant NAME"},
	{"ClockSkew", Warning, "the clocks of a cluster and of rollcall differ by more than a minute, so that ages are wrong", "set the clocks by NTP"},
	{"IdentityChanged", Error, "another cluster answers than the one that was registered", "if it was built anew, register it again: rollcall cluster add NAME --replace"},
	{"RegistryStale", Warning, "the Secrets of the hub could not be read: the clusters that they registered before are judged", "check the hub, and that its credential may list Secrets"},
}

// codeOf finds a code, or makes one of the kubelet's own word.
func codeOf(name string) Code {
	for _, c := range Codes {
		if c.Name == name {
			return c
		}
	}
	return Code{Name: name, Severity: Error, Meaning: "the kubelet's own reason", Remedy: "look at the pod's status and events"}
}
