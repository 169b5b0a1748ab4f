package forbear_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
)

// TestPolicyMarshals: a policy survives the way to JSON and back, and says its
// choices by name.
func TestPolicyMarshals(t *testing.T) {
	p := forbear.Policy{
		Kind: forbear.Webhook, MaxAttempts: 4, Keys: forbear.KeyGenerate,
		Backoff:  forbear.Backoff{Jitter: forbear.JitterFull, Schedule: []time.Duration{0, time.Second, 2 * time.Second, time.Minute}},
		Budget:   budget.Policy{Of: budget.OfTotal},
		Breaker:  breaker.Policy{OnBudget: breaker.BudgetOpens},
		Classify: map[string]forbear.Class{"http_404": forbear.ClassTransient},
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"webhook"`, `"generate"`, `"full"`, `"total"`, `"immediate"`, `"transient"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	var back forbear.Policy
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(p, back) {
		t.Errorf("got %+v, %v; want %+v", back, err, p)
	}
}
