//forbear:plain it hands configurations to their readers, on one goroutine
package interop

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayx "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/export"
)

// Gateway API's own types take both resources, and say of the retries what the policy
// says. What the comments of the fields demand of their values is asked here, since the
// types do not.
func TestGatewayAPI(t *testing.T) {
	exported(t, "gatewayapi", func(t *testing.T, p forbear.Policy, out *export.Export) {
		docs := documents(t, out.Config)
		var route gatewayv1.HTTPRoute
		exactly(t, docs[0], &route)
		if !kubeName.MatchString(route.Name) || len(route.Spec.Rules) > 16 {
			t.Errorf("%q has %d rules", route.Name, len(route.Spec.Rules))
		}
		retried := 0
		for _, rule := range route.Spec.Rules {
			if got := span(t, rule.Timeouts.Request); got != p.Total {
				t.Errorf("a call may take %s, want %s", got, p.Total)
			}
			if got := span(t, rule.Timeouts.BackendRequest); got != p.AttemptTimeout() {
				t.Errorf("an attempt may take %s, want %s", got, p.AttemptTimeout())
			}
			for _, f := range rule.Filters {
				if f.URLRewrite.Path != nil && len(rule.Matches) != 1 {
					t.Errorf("a path is put before that of %d matches", len(rule.Matches))
				}
				if h := f.URLRewrite.Hostname; h != nil && !hostName.MatchString(string(*h)) {
					t.Errorf("%q is no host", *h)
				}
			}
			if *rule.Retry.Attempts == 0 {
				continue
			}
			retried++
			if got := *rule.Retry.Attempts; got != p.Retries() {
				t.Errorf("%d retries, want %d", got, p.Retries())
			}
			if got := span(t, rule.Retry.Backoff); got != p.Backoff.Base {
				t.Errorf("backoff %s, want %s", got, p.Backoff.Base)
			}
		}
		if (retried > 0) != retries(&p) {
			t.Errorf("%d rules are retried, with %d retries in the policy", retried, p.Retries())
		}
		if p.Retries() == 0 {
			return
		}
		var policy gatewayx.XBackendTrafficPolicy
		exactly(t, docs[1], &policy)
		budget := policy.Spec.RetryConstraint.Budget
		if got, want := float64(*budget.Percent), math.Floor(100*p.Budget.Ratio+1e-6); got != want {
			t.Errorf("a budget of %v %%, want %v %%", got, want)
		}
		if got := span(t, budget.Interval); got != p.Budget.Window {
			t.Errorf("a budget over %s, want %s", got, p.Budget.Window)
		}
		if rate := policy.Spec.RetryConstraint.MinRetryRate; *rate.Count != max(p.Budget.MinRetries, 1) || span(t, rate.Interval) > time.Hour {
			t.Errorf("%d retries in %s, want %d", *rate.Count, *rate.Interval, p.Budget.MinRetries)
		}
		if route.Spec.ParentRefs[0].Name != policy.Spec.TargetRefs[0].Name || route.Namespace != policy.Namespace {
			t.Errorf("the route is of %s, and the budget of %s", route.Spec.ParentRefs[0].Name, policy.Spec.TargetRefs[0].Name)
		}
	})
}

var (
	// gatewayTime is the pattern of Duration, and hostName that of PreciseHostname.
	gatewayTime = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)
	hostName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

func span(t *testing.T, d *gatewayv1.Duration) time.Duration {
	t.Helper()
	got, err := time.ParseDuration(string(*d))
	if err != nil || !gatewayTime.MatchString(string(*d)) {
		t.Fatalf("%q: %v", *d, err)
	}
	return got
}

// exactly reads JSON into a type, of which every field has to be known.
func exactly(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
}
