package chart

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// pod is a template of pods with forbear in it.
type pod struct {
	name    string
	labels  map[string]string
	spec    corev1.PodSpec
	forbear corev1.Container // the container that is forbear
	sidecar bool
}

// pods lists the templates of a manifest.
func (m *manifest) pods() (list []pod) {
	add := func(name string, t corev1.PodTemplateSpec) {
		p := pod{name: name, labels: t.Labels, spec: t.Spec}
		for _, c := range t.Spec.InitContainers {
			p.forbear, p.sidecar = c, true
		}
		if !p.sidecar {
			p.forbear = t.Spec.Containers[0]
		}
		list = append(list, p)
	}
	for _, d := range all[*appsv1.Deployment](m) {
		add(d.Name, d.Spec.Template)
	}
	for _, j := range all[*batchv1.Job](m) {
		add(j.Name, j.Spec.Template)
	}
	return list
}

// flagValue returns the value of a flag --name=value, or "".
func (p pod) flagValue(name string) string {
	for _, a := range p.forbear.Args {
		if v, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return v
		}
	}
	return ""
}

func (p pod) duration(t *testing.T, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(p.flagValue(name))
	if err != nil {
		t.Errorf("%s: --%s: %v", p.name, name, err)
	}
	return d
}

// A pod is killed after all that forbear waits for by itself, and not before.
func TestGracePeriods(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		for _, p := range m.pods() {
			if p.forbear.Args[0] != "serve" {
				continue
			}
			grace := time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second
			needs := p.duration(t, "drain-delay") + p.duration(t, "drain-timeout")
			if p.flagValue("api-token-file") != "" {
				needs += 10 * time.Second // an attempt of a webhook
			}
			if grace < needs+5*time.Second {
				t.Errorf("%s: terminationGracePeriodSeconds %v, and forbear takes up to %v", p.name, grace, needs)
			}
			probe := p.forbear.ReadinessProbe
			notice := time.Duration(probe.PeriodSeconds*probe.FailureThreshold) * time.Second
			if delay := p.duration(t, "drain-delay"); !p.sidecar && delay <= notice {
				t.Errorf("%s: --drain-delay %v, and a probe takes %v to notice", p.name, delay, notice)
			}
		}
	})
	everything := template(t, "-f", values("everything")).pods()
	i := slices.IndexFunc(everything, func(p pod) bool { return p.name == "forbear-delivery" })
	if got := *everything[i].spec.TerminationGracePeriodSeconds; got != 5+20+30+10 {
		t.Errorf("with attempts of 30 s the grace period is %d", got)
	}
}

// No pod runs as root, writes to its own file system, or has a right that it does not
// need, and each says what memory it takes.
func TestPodsAreRestricted(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		for _, p := range m.pods() {
			s := p.forbear.SecurityContext
			if s == nil || !*s.RunAsNonRoot || *s.RunAsUser != 65532 || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation ||
				!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: securityContext %+v", p.name, s)
			}
			if p.spec.AutomountServiceAccountToken == nil || *p.spec.AutomountServiceAccountToken {
				t.Errorf("%s: a token of the API server is mounted", p.name)
			}
			if !p.sidecar && (p.spec.EnableServiceLinks == nil || *p.spec.EnableServiceLinks) {
				t.Errorf("%s: Services add variables", p.name)
			}
			if r := p.forbear.Resources; r.Limits.Memory().IsZero() || r.Requests.Memory().IsZero() || r.Requests.Cpu().IsZero() {
				t.Errorf("%s: resources %+v", p.name, r)
			}
			if p.forbear.Image == "" || strings.HasSuffix(p.forbear.Image, ":latest") {
				t.Errorf("%s: image %q", p.name, p.forbear.Image)
			}
		}
	})
}

// A cluster that gives each namespace its users is left to do so.
func TestUserOfTheCluster(t *testing.T) {
	for _, p := range template(t, "-f", values("everything"), "--set", "pod.user=null").pods() {
		if s := p.forbear.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || !*s.RunAsNonRoot {
			t.Errorf("%s: securityContext %+v", p.name, s)
		}
		if s := p.spec.SecurityContext; !p.sidecar && s.FSGroup != nil {
			t.Errorf("%s: the pod's securityContext %+v", p.name, s)
		}
	}
	for _, p := range template(t, "-f", values("everything"), "--set", "pod.user=1000660000").pods() {
		if s := p.forbear.SecurityContext; *s.RunAsUser != 1000660000 || *s.RunAsGroup != 1000660000 || *p.spec.SecurityContext.FSGroup != 1000660000 {
			t.Errorf("%s: securityContext %+v", p.name, s)
		}
	}
}

// Probes ask what serve has, at a port that the container has; a sidecar lets the others
// start when it is ready.
func TestProbes(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		for _, p := range m.pods() {
			if p.forbear.Args[0] != "serve" {
				continue
			}
			startup := map[bool]string{true: "/health/ready", false: "/health/live"}[p.sidecar]
			for _, probe := range []struct {
				*corev1.Probe
				path string
			}{{p.forbear.StartupProbe, startup}, {p.forbear.LivenessProbe, "/health/live"}, {p.forbear.ReadinessProbe, "/health/ready"}} {
				if probe.HTTPGet.Path != probe.path {
					t.Errorf("%s: a probe asks for %s, want %s", p.name, probe.HTTPGet.Path, probe.path)
				}
				port, ok := p.port(probe.HTTPGet.Port.StrVal)
				if !ok || !strings.HasSuffix(p.flagValue("metrics"), port) {
					t.Errorf("%s: a probe asks at %q, which is %q; --metrics is %q", p.name, probe.HTTPGet.Port.StrVal, port, p.flagValue("metrics"))
				}
			}
			if p.sidecar && (p.forbear.RestartPolicy == nil || *p.forbear.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
				t.Errorf("%s: an init container that does not go on", p.name)
			}
		}
	})
}

// port returns ":NUMBER" of a named port.
func (p pod) port(name string) (string, bool) {
	for _, port := range p.forbear.Ports {
		if port.Name == name {
			return ":" + itoa(port.ContainerPort), true
		}
	}
	return "", false
}

// Files that flags name are in a volume, and volumes are there.
func TestFilesAreMounted(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		for _, p := range m.pods() {
			for _, mount := range p.forbear.VolumeMounts {
				if mount.SubPath != "" {
					t.Errorf("%s: %s is mounted by subPath, which the kubelet does not renew", p.name, mount.MountPath)
				}
				if !slices.ContainsFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
					t.Errorf("%s: there is no volume %s", p.name, mount.Name)
				}
			}
			for _, a := range p.forbear.Args {
				_, file, ok := strings.Cut(a, "=/")
				if !ok {
					continue
				}
				file = "/" + file
				if !slices.ContainsFunc(p.forbear.VolumeMounts, func(v corev1.VolumeMount) bool {
					return file == v.MountPath || path.Dir(file) == v.MountPath
				}) {
					t.Errorf("%s: %s is in no volume", p.name, a)
				}
			}
			for _, v := range p.spec.Volumes {
				if v.Secret != nil && *v.Secret.DefaultMode != 0o440 {
					t.Errorf("%s: the mode of %s is %o", p.name, v.Name, *v.Secret.DefaultMode)
				}
			}
		}
	})
}

// Secrets come from Secrets that are there already: none is made, and none is a plain
// value, an argument, or in a ConfigMap.
func TestSecretsStaySecret(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		if made := all[*corev1.Secret](m); len(made) > 0 {
			t.Errorf("the chart makes %d Secrets", len(made))
		}
		for _, p := range m.pods() {
			for _, e := range p.forbear.Env {
				if strings.HasPrefix(e.Name, "FORBEAR_") && (e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil) {
					t.Errorf("%s: %s is no reference to a Secret", p.name, e.Name)
				}
			}
			for _, a := range p.forbear.Args {
				if strings.Contains(a, "postgres:") || strings.Contains(a, "redis:") {
					t.Errorf("%s: a URL is on the command line: %s", p.name, a)
				}
			}
		}
	})
}
