package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podRules are those for a pod template that people break, of
// ValidatePodTemplateSpec (pkg/apis/core/validation).
type podRules struct {
	at       *field.Path
	pod      *corev1.PodSpec
	volumes  map[string]bool
	errs     field.ErrorList
	warnings []Fault
}

func (p *podRules) add(e *field.Error) { p.errs = append(p.errs, e) }

func (p *podRules) warn(at *field.Path, format string, args ...any) {
	p.warnings = append(p.warnings, Fault{Path: at.String(), Code: Suspicious, Message: fmt.Sprintf(format, args...), Warning: true})
}

func (p *podRules) judge() {
	p.listVolumes()
	p.tolerations()
	p.affinity()
	p.errs = append(p.errs, metavalidation.ValidateLabels(p.pod.NodeSelector, p.at.Child("nodeSelector"))...)
	if n := p.pod.TerminationGracePeriodSeconds; n != nil && *n < 0 {
		p.warn(p.at.Child("terminationGracePeriodSeconds"), "it is negative: one second is given")
	}
	for _, f := range []struct{ name, value string }{{"serviceAccountName", p.pod.ServiceAccountName}, {"priorityClassName", p.pod.PriorityClassName}} {
		if f.value != "" {
			p.name(p.at.Child(f.name), f.value, validation.IsDNS1123Subdomain)
		}
	}
	if len(p.pod.Containers) == 0 {
		p.add(field.Required(p.at.Child("containers"), "at least one"))
	}
	names := map[string]bool{}
	for i := range p.pod.InitContainers {
		p.container(p.at.Child("initContainers").Index(i), &p.pod.InitContainers[i], names)
	}
	for i := range p.pod.Containers {
		p.container(p.at.Child("containers").Index(i), &p.pod.Containers[i], names)
		p.hostPorts(p.at.Child("containers").Index(i).Child("ports"), p.pod.Containers[i].Ports)
	}
}

func (p *podRules) name(at *field.Path, name string, check func(string) []string) {
	for _, wrong := range check(name) {
		p.add(field.Invalid(at, name, wrong))
	}
}

func (p *podRules) listVolumes() {
	p.volumes = map[string]bool{}
	for i, v := range p.pod.Volumes {
		at := p.at.Child("volumes").Index(i)
		if v.Name == "" {
			p.add(field.Required(at.Child("name"), "a name"))
		} else {
			p.name(at.Child("name"), v.Name, validation.IsDNS1123Label)
		}
		if p.volumes[v.Name] {
			p.add(field.Duplicate(at.Child("name"), v.Name))
		}
		p.volumes[v.Name] = true
		if v.HostPath != nil {
			if v.HostPath.Path == "" {
				p.add(field.Required(at.Child("hostPath", "path"), "a path"))
			} else if slices.Contains(strings.Split(v.HostPath.Path, "/"), "..") {
				p.add(field.Invalid(at.Child("hostPath", "path"), v.HostPath.Path, `must not contain ".."`))
			}
		}
		if v.ConfigMap != nil && v.ConfigMap.Name == "" {
			p.add(field.Required(at.Child("configMap", "name"), "a name"))
		}
		if v.Secret != nil && v.Secret.SecretName == "" {
			p.add(field.Required(at.Child("secret", "secretName"), "a name"))
		}
	}
}

func (p *podRules) container(at *field.Path, c *corev1.Container, names map[string]bool) {
	switch {
	case c.Name == "":
		p.add(field.Required(at.Child("name"), "a name"))
	case names[c.Name]:
		p.add(field.Duplicate(at.Child("name"), c.Name))
	default:
		p.name(at.Child("name"), c.Name, validation.IsDNS1123Label)
	}
	names[c.Name] = true
	switch {
	case c.Image == "":
		p.add(field.Required(at.Child("image"), "an image"))
	case strings.TrimSpace(c.Image) != c.Image:
		p.warn(at.Child("image"), "it begins or ends with a blank: no pod of it is accepted")
	}
	p.ports(at.Child("ports"), c.Ports)
	p.env(at.Child("env"), c.Env)
	p.mounts(at.Child("volumeMounts"), c.VolumeMounts)
	p.resources(at.Child("resources"), c.Resources)
	for _, probe := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		p.probe(at.Child(probe.name), probe.probe)
	}
	if s := c.SecurityContext; s != nil && s.RunAsNonRoot != nil && *s.RunAsNonRoot && s.RunAsUser != nil && *s.RunAsUser == 0 {
		p.warn(at.Child("securityContext", "runAsUser"), "it is 0, root, and runAsNonRoot is true: the kubelet will not start it")
	}
}

func (p *podRules) ports(at *field.Path, ports []corev1.ContainerPort) {
	names := map[string]bool{}
	for i, port := range ports {
		at := at.Index(i)
		p.port(at.Child("containerPort"), port.ContainerPort)
		if port.HostPort != 0 {
			p.port(at.Child("hostPort"), port.HostPort)
		}
		if !slices.Contains([]corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, port.Protocol) {
			p.add(field.NotSupported(at.Child("protocol"), port.Protocol, []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}))
		}
		if port.Name == "" {
			continue
		}
		p.name(at.Child("name"), port.Name, validation.IsValidPortName)
		if names[port.Name] {
			p.add(field.Duplicate(at.Child("name"), port.Name))
		}
		names[port.Name] = true
	}
}

// hostPorts follows validateHostNetwork, which passes over init containers.
func (p *podRules) hostPorts(at *field.Path, ports []corev1.ContainerPort) {
	for i, port := range ports {
		if p.pod.HostNetwork && port.HostPort != 0 && port.HostPort != port.ContainerPort {
			p.add(field.Invalid(at.Index(i).Child("hostPort"), port.HostPort, "must be containerPort with hostNetwork"))
		}
	}
}

func (p *podRules) port(at *field.Path, n int32) {
	if n < 1 || n > 65535 {
		p.add(field.Invalid(at, n, "must be from 1 to 65535"))
	}
}

// env judges names only: a value may be secret.
func (p *podRules) env(at *field.Path, env []corev1.EnvVar) {
	seen := map[string]int{}
	for i, e := range env {
		at := at.Index(i)
		if e.Name == "" {
			p.add(field.Required(at.Child("name"), "a name"))
		} else if strings.ContainsRune(e.Name, '=') {
			p.add(field.Invalid(at.Child("name"), e.Name, `must not contain "="`))
		}
		if first, twice := seen[e.Name]; twice {
			p.warn(at.Child("name"), "%s is set twice, first by env[%d]: the last one counts", e.Name, first)
		} else {
			seen[e.Name] = i
		}
		if e.Value != "" && e.ValueFrom != nil {
			p.add(field.Forbidden(at.Child("valueFrom"), "either value or valueFrom"))
		}
	}
}

func (p *podRules) mounts(at *field.Path, mounts []corev1.VolumeMount) {
	paths := map[string]bool{}
	for i, m := range mounts {
		at := at.Index(i)
		switch {
		case m.Name == "":
			p.add(field.Required(at.Child("name"), "the name of a volume"))
		case !p.volumes[m.Name]:
			p.add(field.NotFound(at.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			p.add(field.Required(at.Child("mountPath"), "a path"))
		}
		if paths[m.MountPath] {
			p.add(field.Invalid(at.Child("mountPath"), m.MountPath, "must be mounted once"))
		}
		paths[m.MountPath] = true
		if m.SubPath != "" && (path.IsAbs(m.SubPath) || slices.Contains(strings.Split(m.SubPath, "/"), "..")) {
			p.add(field.Invalid(at.Child("subPath"), m.SubPath, "must be relative and without .."))
		}
	}
}

func (p *podRules) resources(at *field.Path, r corev1.ResourceRequirements) {
	for name, request := range r.Requests {
		if request.Sign() < 0 {
			p.add(field.Invalid(at.Child("requests").Key(string(name)), request.String(), "must not be negative"))
		}
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			p.add(field.Invalid(at.Child("requests").Key(string(name)), request.String(), "must not be more than the limit of "+limit.String()))
		}
	}
	for name, limit := range r.Limits {
		if limit.Sign() < 0 {
			p.add(field.Invalid(at.Child("limits").Key(string(name)), limit.String(), "must not be negative"))
		}
	}
}

func (p *podRules) probe(at *field.Path, probe *corev1.Probe) {
	if probe == nil {
		return
	}
	handlers := 0
	for _, set := range []bool{probe.Exec != nil, probe.HTTPGet != nil, probe.TCPSocket != nil, probe.GRPC != nil} {
		if set {
			handlers++
		}
	}
	switch {
	case handlers == 0:
		p.add(field.Required(at, "one of exec, httpGet, tcpSocket and grpc"))
	case handlers > 1:
		p.add(field.Forbidden(at, "only one of exec, httpGet, tcpSocket and grpc"))
	}
	for _, n := range []struct {
		name  string
		value int32
	}{{"initialDelaySeconds", probe.InitialDelaySeconds}, {"timeoutSeconds", probe.TimeoutSeconds}, {"periodSeconds", probe.PeriodSeconds}, {"successThreshold", probe.SuccessThreshold}, {"failureThreshold", probe.FailureThreshold}} {
		if n.value < 0 {
			p.add(field.Invalid(at.Child(n.name), n.value, "must not be negative"))
		}
	}
}
