package interop

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"

	networking "istio.io/api/networking/v1"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/export"
)

// Istio's own messages take both resources, and say of the retries what the policy
// says.
func TestIstio(t *testing.T) {
	exported(t, "istio", func(t *testing.T, p forbear.Policy, out *export.Export) {
		docs := documents(t, out.Config)
		if len(docs) != 2 {
			t.Fatalf("%d documents", len(docs))
		}
		var service networking.VirtualService
		strictly(t, spec(t, docs[0], "VirtualService"), &service)
		var rule networking.DestinationRule
		strictly(t, spec(t, docs[1], "DestinationRule"), &rule)
		if got, want := rule.GetTrafficPolicy().GetRetryBudget().GetPercent().GetValue(), 100*p.Budget.Ratio; math.Abs(got-want) > 1e-6 {
			t.Errorf("a budget of %v %%, want %v %%", got, want)
		}
		retried := 0
		for _, route := range service.GetHttp() {
			if got := route.GetTimeout().AsDuration(); got != p.Total {
				t.Errorf("%s: a call may take %s, want %s", route.GetName(), got, p.Total)
			}
			retry := route.GetRetries()
			if retry == nil {
				t.Errorf("%s: Istio's own retries hold where there are none", route.GetName())
			}
			if retry.GetAttempts() == 0 {
				continue
			}
			retried++
			// What Istio calls attempts are retries.
			if got := int(retry.GetAttempts()); got != p.Retries() {
				t.Errorf("%d retries, want %d", got, p.Retries())
			}
			if got := retry.GetPerTryTimeout().AsDuration(); got != p.AttemptTimeout() {
				t.Errorf("an attempt may take %s, want %s", got, p.AttemptTimeout())
			}
			if got := retry.GetBackoff().AsDuration(); got != p.Backoff.Base {
				t.Errorf("backoff %s, want %s", got, p.Backoff.Base)
			}
		}
		if (retried > 0) != retries(&p) {
			t.Errorf("%d routes are retried, with %d retries in the policy", retried, p.Retries())
		}
	})
}

// kubeName is what Kubernetes takes for the name of such a resource.
var kubeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// spec is that of a resource of Kubernetes.
func spec(t *testing.T, data []byte, kind string) json.RawMessage {
	t.Helper()
	var resource struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(data, &resource); err != nil {
		t.Fatal(err)
	}
	if resource.APIVersion != "networking.istio.io/v1" || resource.Kind != kind || !kubeName.MatchString(resource.Metadata.Name) {
		t.Fatalf("got %s %s %q, want a named %s", resource.APIVersion, resource.Kind, resource.Metadata.Name, kind)
	}
	return resource.Spec
}
