package chart

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// selected names the pods that a selector finds.
func (m *manifest) selected(t *testing.T, what string, matches map[string]string) (found []pod) {
	t.Helper()
	s := labels.SelectorFromSet(matches)
	for _, p := range m.pods() {
		if s.Matches(labels.Set(p.labels)) {
			found = append(found, p)
		}
	}
	if len(matches) == 0 || len(found) != 1 {
		t.Errorf("%s selects %d kinds of pods by %v, want one", what, len(found), matches)
	}
	return found
}

// What selects pods finds those of one Deployment: never a migration's, and never the
// other component's.
func TestSelectors(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		for _, d := range all[*appsv1.Deployment](m) {
			m.selected(t, "the Deployment "+d.Name, d.Spec.Selector.MatchLabels)
			for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
				m.selected(t, "the spread of "+d.Name, c.LabelSelector.MatchLabels)
			}
		}
		for _, p := range all[*policyv1.PodDisruptionBudget](m) {
			m.selected(t, "the budget "+p.Name, p.Spec.Selector.MatchLabels)
			if p.Spec.MaxUnavailable == nil || p.Spec.MaxUnavailable.IntValue() != 1 {
				t.Errorf("the budget %s lets %v go, want one: with none, no node could be drained", p.Name, p.Spec.MaxUnavailable)
			}
			if u := p.Spec.UnhealthyPodEvictionPolicy; u == nil || *u != policyv1.AlwaysAllow {
				t.Errorf("the budget %s keeps pods that are not ready from being evicted", p.Name)
			}
		}
		for _, n := range all[*networkingv1.NetworkPolicy](m) {
			m.selected(t, "the policy "+n.Name, n.Spec.PodSelector.MatchLabels)
		}
		for _, s := range all[*corev1.Service](m) {
			for _, p := range m.selected(t, "the Service "+s.Name, s.Spec.Selector) {
				for _, port := range s.Spec.Ports {
					if _, ok := p.port(port.TargetPort.StrVal); !ok {
						t.Errorf("the Service %s sends to the port %q, which %s has not", s.Name, port.TargetPort.StrVal, p.name)
					}
				}
				if listen, _ := p.port("http"); p.flagValue("listen") != listen {
					t.Errorf("%s listens on %s, and its port is %s", p.name, p.flagValue("listen"), listen)
				}
			}
		}
	})
}

// The autoscaler's Deployment says nothing of replicas: an upgrade would undo its work.
func TestAutoscaling(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		scaled := map[string]bool{}
		for _, h := range all[*autoscalingv2.HorizontalPodAutoscaler](m) {
			scaled[h.Spec.ScaleTargetRef.Name] = true
		}
		for _, d := range all[*appsv1.Deployment](m) {
			if (d.Spec.Replicas == nil) != scaled[d.Name] {
				t.Errorf("%s: replicas %v, with an autoscaler: %v", d.Name, d.Spec.Replicas, scaled[d.Name])
			}
			delete(scaled, d.Name)
		}
		if len(scaled) > 0 {
			t.Errorf("autoscalers of %v, which are not there", slices.Collect(maps.Keys(scaled)))
		}
	})
}

// Each object has a name of its own, and each ConfigMap that a pod names is made or the
// user's.
func TestNames(t *testing.T) {
	each(t, func(t *testing.T, m *manifest) {
		seen := map[string]bool{}
		for _, o := range m.objects {
			a, ok := o.(metav1.Object)
			if !ok {
				t.Fatalf("%T", o)
			}
			name := fmt.Sprintf("%T %v %s", o, o.GetObjectKind().GroupVersionKind().Kind, a.GetName())
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		made := map[string]*corev1.ConfigMap{}
		for _, c := range all[*corev1.ConfigMap](m) {
			made[c.Name] = c
		}
		for _, p := range m.pods() {
			for _, v := range p.spec.Volumes {
				if v.ConfigMap != nil && made[v.ConfigMap.Name] == nil && !slices.Contains([]string{"internal-ca", "hooks-policy"}, v.ConfigMap.Name) {
					t.Errorf("%s: there is no ConfigMap %s", p.name, v.ConfigMap.Name)
				}
			}
		}
	})
}

// A policy comes through as it is: the lines of its faults are those of the user's file.
func TestPolicyIsKept(t *testing.T) {
	for _, text := range []string{"\n\n  service: a # {{ .Values }}\n  instances: 4\n", "service: a", "# tab\there  \nservice: 'ü'\n\n"} {
		m := template(t, "-f", values("minimal"), withPolicy(t, "gateway.policy", text))
		if got := all[*corev1.ConfigMap](m)[0].Data["policy.yaml"]; got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// The migration runs before the pods of its version, needs nothing that helm makes after
// hooks, and may be another user of the database.
func TestMigration(t *testing.T) {
	job := func(name string) *batchv1.Job { return all[*batchv1.Job](template(t, "-f", values(name)))[0] }
	secret := func(j *batchv1.Job) string {
		ref := j.Spec.Template.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef
		return ref.Name + "/" + ref.Key
	}
	hook := job("delivery")
	if got := hook.Annotations["helm.sh/hook"]; got != "pre-install,pre-upgrade" {
		t.Errorf("hook %q", got)
	}
	if len(hook.Spec.Template.Spec.Volumes) != 0 || hook.Spec.Template.Spec.ServiceAccountName != "default" {
		t.Errorf("the hook needs %+v", hook.Spec.Template.Spec)
	}
	if got := hook.Spec.Template.Spec.Containers[0].Args; !slices.Equal(got, []string{"migrate", "--rolling"}) {
		t.Errorf("it runs %v while the pods of the version before are at work", got)
	}
	if got := secret(hook); got != "forbear-postgres/url" {
		t.Errorf("the URL is from %s", got)
	}
	if got := secret(job("everything")); got != "forbear-postgres/owner" {
		t.Errorf("the owner's URL is from %s", got)
	}
	plain := job("hardened")
	for _, change := range []string{"image.digest=sha256:" + strings.Repeat("f", 64), "delivery.migration.rolling=false", "pod.labels.team=a"} {
		other := all[*batchv1.Job](template(t, "-f", values("hardened"), "--set", change))[0]
		if len(plain.Annotations) > 0 || plain.Name == other.Name {
			t.Errorf("without hooks: annotations %v, and with %s the Job %s would have to change", plain.Annotations, change, other.Name)
		}
	}
}

// Prometheus finds the ports of the metrics, and brings the token that they demand.
func TestServiceMonitor(t *testing.T) {
	m := template(t, "-f", values("everything"))
	for _, u := range all[*unstructured.Unstructured](m) {
		if u.GetKind() != "ServiceMonitor" {
			continue
		}
		matches, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
		found := 0
		for _, s := range all[*corev1.Service](m) {
			if labels.SelectorFromSet(matches).Matches(labels.Set(s.Labels)) {
				found++
			}
		}
		endpoints, _, _ := unstructured.NestedSlice(u.Object, "spec", "endpoints")
		e := endpoints[0].(map[string]any)
		token, _, _ := unstructured.NestedString(e, "authorization", "credentials", "name")
		if found != 2 || e["port"] != "metrics" || token != "forbear-metrics" {
			t.Errorf("it finds %d Services, at %v, with %q", found, e["port"], token)
		}
		return
	}
	t.Error("there is none")
}
