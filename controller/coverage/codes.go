package coverage

// Code names a reason, in kubectl's and the kubelet's words where they exist.
type Code string

// The codes that this package gives. A container's waiting reason and a failed
// pod's status.reason pass through in the kubelet's own words.
const (
	NodeNameMismatch           Code = "NodeNameMismatch"
	NodeSelectorMismatch       Code = "NodeSelectorMismatch"
	NodeAffinityMismatch       Code = "NodeAffinityMismatch"
	AffinityUnparseable        Code = "AffinityUnparseable"
	UntoleratedTaint           Code = "UntoleratedTaint"
	VirtualNode                Code = "VirtualNode"
	NodeLeaving                Code = "NodeLeaving"
	NodeIsNotReady             Code = "NodeNotReady"
	NodeUnreachable            Code = "NodeUnreachable"
	HeartbeatStale             Code = "HeartbeatStale"
	NotAttempted               Code = "NotAttempted"
	FailedCreate               Code = "FailedCreate"
	DeletedAtOnce              Code = "DeletedAtOnce"
	FailedScheduling           Code = "FailedScheduling"
	ImagePullBackOff           Code = "ImagePullBackOff"
	CrashLoopBackOff           Code = "CrashLoopBackOff"
	CreateContainerConfigError Code = "CreateContainerConfigError"
	ContainerCreating          Code = "ContainerCreating"
	ReadinessProbe             Code = "ReadinessProbe"
	MinReadySeconds            Code = "MinReadySeconds"
	Evicted                    Code = "Evicted"
	FailedPodBackOff           Code = "FailedPodBackOff"
	Completed                  Code = "Completed"
	Terminating                Code = "Terminating"
	StuckTerminating           Code = "StuckTerminating"
	RollingUpdate              Code = "RollingUpdate"
	RolloutBlocked             Code = "RolloutBlocked"
	SurgeSlotHeld              Code = "SurgeSlotHeld"
	WaitingForDelete           Code = "WaitingForDelete"
	ExtraPod                   Code = "ExtraPod"
	ForeignPod                 Code = "ForeignPod"
	OrphanPod                  Code = "OrphanPod"
	NodeGone                   Code = "NodeGone"
	StatusStale                Code = "StatusStale"
	ControllerStalled          Code = "ControllerStalled"
	NoEligibleNodes            Code = "NoEligibleNodes"
	DaemonSetAbsent            Code = "DaemonSetAbsent"
)
