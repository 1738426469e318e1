package clusters

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The wire structs are the files as written: a pointer or a nil slice tells a
// field that is absent from one that is empty.
type (
	wireFleet struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Metadata   wireName      `json:"metadata"`
		Spec       wireFleetSpec `json:"spec"`
	}

	wireName struct {
		Name string `json:"name"`
	}

	wireFleetSpec struct {
		Source     *wireSource     `json:"source"`
		Clusters   wireRegistry    `json:"clusters"`
		Targets    []wireTarget    `json:"targets"`
		Components []wireComponent `json:"components"`
		Agents     []wireAgent     `json:"agents"`
		Exceptions []wireException `json:"exceptions"`
		DaemonSets wireDaemonSets  `json:"daemonSets"`
		Drift      wireDrift       `json:"drift"`
		Taints     wireTaints      `json:"taints"`
		AppliedBy  []string        `json:"appliedBy"`
		Policy     wirePolicy      `json:"policy"`
		Rollout    *wireRollout    `json:"rollout"`
		Approvals  []wireApproval  `json:"approvals"`
	}

	wireRollout struct {
		Waves  []wireWave `json:"waves"`
		Resume string     `json:"resume"`
	}

	wireWave struct {
		Name     string         `json:"name"`
		Clusters *wireSelection `json:"clusters"`
		Size     *amount        `json:"size"`
		Soak     *string        `json:"soak"`
		Gate     wireGate       `json:"gate"`
	}

	wireGate struct {
		Covered  *amount `json:"covered"`
		UpToDate *amount `json:"upToDate"`
	}

	wireApproval struct {
		Commit   string   `json:"commit"`
		Clusters []string `json:"clusters"`
		Allow    []string `json:"allow"`
	}

	wireSource struct {
		URL      string      `json:"url"`
		Ref      wireRef     `json:"ref"`
		Path     *string     `json:"path"`
		Poll     *string     `json:"poll"`
		TimeZone *string     `json:"timeZone"`
		Auth     wireAuth    `json:"auth"`
		Verify   *wireVerify `json:"verify"`
	}

	wireRef struct {
		Branch string `json:"branch"`
		Tag    string `json:"tag"`
		Semver string `json:"semver"`
		Name   string `json:"name"`
		Commit string `json:"commit"`
	}

	wireAuth struct {
		TokenFile    string         `json:"tokenFile"`
		Username     string         `json:"username"`
		PasswordFile string         `json:"passwordFile"`
		CAFile       string         `json:"caFile"`
		CertFile     string         `json:"certFile"`
		KeyFile      string         `json:"keyFile"`
		SSH          *wireSSH       `json:"ssh"`
		GitHubApp    *wireGitHubApp `json:"githubApp"`
	}

	wireSSH struct {
		KeyFile        string `json:"keyFile"`
		PassphraseFile string `json:"passphraseFile"`
		Agent          bool   `json:"agent"`
		KnownHostsFile string `json:"knownHostsFile"`
	}

	wireGitHubApp struct {
		AppID          int64  `json:"appID"`
		InstallationID int64  `json:"installationID"`
		KeyFile        string `json:"keyFile"`
		APIURL         string `json:"apiURL"`
	}

	wireVerify struct {
		Object             string `json:"object"`
		AllowedSignersFile string `json:"allowedSignersFile"`
		OpenPGPKeysFile    string `json:"openPGPKeysFile"`
	}

	wireRegistry struct {
		Directory string   `json:"directory"`
		Hub       *wireHub `json:"hub"`
	}

	wireSelection struct {
		Names []string `json:"names"`
		metav1.LabelSelector
	}

	wireTarget struct {
		Name      string         `json:"name"`
		Clusters  *wireSelection `json:"clusters"`
		Overlay   string         `json:"overlay"`
		Namespace *string        `json:"namespace"`
	}

	wireComponent struct {
		Clusters *wireSelection `json:"clusters"`
		Path     string         `json:"path"`
	}

	wireAgent struct {
		Name         string                `json:"name"`
		Names        []string              `json:"names"`
		Match        *wireSelection        `json:"match"`
		Clusters     *wireSelection        `json:"clusters"`
		Nodes        *metav1.LabelSelector `json:"nodes"`
		Min          *amount               `json:"min"`
		Severity     *string               `json:"severity"`
		Severities   map[string]string     `json:"severities"`
		StartupGrace *string               `json:"startupGrace"`
	}

	wireException struct {
		Agent    string         `json:"agent"`
		Code     string         `json:"code"`
		Clusters *wireSelection `json:"clusters"`
		Nodes    wireNodes      `json:"nodes"`
		Reason   string         `json:"reason"`
		Owner    string         `json:"owner"`
		Until    day            `json:"until"`
	}

	wireExcuse struct {
		Reason string `json:"reason"`
		Owner  string `json:"owner"`
		Until  day    `json:"until"`
		Agent  string `json:"agent"`
		Code   string `json:"code"`
	}

	wireDaemonSets struct {
		Exclude []wireSelection `json:"exclude"`
	}

	wireDrift struct {
		Ignore []wireIgnore `json:"ignore"`
	}

	wireIgnore struct {
		Clusters  *wireSelection `json:"clusters"`
		Group     string         `json:"group"`
		Kind      string         `json:"kind"`
		Namespace string         `json:"namespace"`
		Name      string         `json:"name"`
		Fields    []string       `json:"fields"`
		Managers  []string       `json:"managers"`
		Reason    string         `json:"reason"`
	}

	wireNodes struct {
		Names []string `json:"names"`
	}

	wireTaints struct {
		Lifecycle []string `json:"lifecycle"`
		Startup   []string `json:"startup"`
		Leaving   []string `json:"leaving"`
	}

	wirePolicy struct {
		May              []string     `json:"may"`
		Observe          *string      `json:"observe"`
		Windows          []wireWindow `json:"windows"`
		StartupGrace     *string      `json:"startupGrace"`
		ProgressDeadline *string      `json:"progressDeadline"`
		StaleAfter       *string      `json:"staleAfter"`
		MaxDeletes       *amount      `json:"maxDeletes"`
		Force            *string      `json:"force"`
	}

	wireWindow struct {
		Allow     *string `json:"allow"`
		Deny      *string `json:"deny"`
		For       string  `json:"for"`
		TimeZone  *string `json:"timeZone"`
		LastStart *string `json:"lastStart"`
	}

	wireCluster struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   wireLabels      `json:"metadata"`
		Spec       wireClusterSpec `json:"spec"`
		Status     wireStatus      `json:"status"`
	}

	wireRecordedAuth struct {
		TokenFile string `json:"tokenFile"`
		CAFile    string `json:"caFile"`
	}

	wireStatus struct {
		Identity string `json:"identity"`
		Version  string `json:"version"`
		At       string `json:"registeredAt"`
	}

	wireLabels struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	}

	wireClusterSpec struct {
		Kubeconfig   *wireKubeconfig   `json:"kubeconfig"`
		Recorded     texts             `json:"recorded"`
		RecordedAuth *wireRecordedAuth `json:"recordedAuth"`
		Reachability *string           `json:"reachability"`
		Identity     string            `json:"identity"`
		Policy       wirePolicy        `json:"policy"`
		wireSettings
	}

	wireKubeconfig struct {
		Path    string `json:"path"`
		Context string `json:"context"`
	}
)
