package grpcretry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
)

func TestImportServiceConfig(t *testing.T) {
	imports, err := grpcretry.ImportServiceConfig([]byte(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"methodConfig": [{
			"name": [{"service": "ledger.Ledger", "method": "Get"}, {"service": "ledger.Reports"}],
			"timeout": "90s",
			"retryPolicy": {
				"maxAttempts": 9, "initialBackoff": "0.1s", "maxBackoff": "120s", "backoffMultiplier": 1.5,
				"retryableStatusCodes": ["UNAVAILABLE", "internal", 8, "UNAUTHENTICATED"]
			}
		}, {
			"name": [{}],
			"timeout": "1s"
		}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
	}`))
	if err != nil || len(imports) != 1 {
		t.Fatalf("%d imports, %v; want 1", len(imports), err)
	}
	im := imports[0]
	if want := []string{"/ledger.Ledger/Get", "/ledger.Reports/*"}; !slices.Equal(im.Methods, want) {
		t.Errorf("methods %q, want %q", im.Methods, want)
	}
	p := im.Policy
	if p.MaxRetries != 5 || p.Total != 30*time.Second || p.Backoff.Base != 100*time.Millisecond || p.Backoff.Cap != 30*time.Second {
		t.Errorf("policy %+v", p)
	}
	// Listed and allowed stays; allowed but not listed is terminal; listed and not allowed is left out.
	for label, want := range map[string]forbear.Class{
		"grpc_ABORTED": forbear.ClassTerminal, "grpc_DEADLINE_EXCEEDED": forbear.ClassTerminal, "grpc_UNAVAILABLE": 0, "grpc_INTERNAL": 0,
	} {
		if got := p.Classify[label]; got != want {
			t.Errorf("%s: class %v, want %v", label, got, want)
		}
	}
	if _, err := forbear.New("ledger", p); err != nil {
		t.Errorf("the policy is refused: %v", err)
	}
	if im.Throttle == nil {
		t.Error("the throttle is gone")
	}
	var found []string
	for _, f := range im.Findings {
		found = append(found, f.String())
	}
	report := strings.Join(found, "\n")
	for _, want := range []string{
		"maxAttempts: 9 attempts", "(R-2)", "maxBackoff: 2m0s is over 1m0s", "backoffMultiplier: 1.5 is not 2",
		"INTERNAL must not be retried", "(R-4)", "UNAUTHENTICATED gets one", "(R-9)", "timeout: 1m30s is over 30s", "(R-3)", "20 % only",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the findings lack %q:\n%s", want, report)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	policy := func(s string) string {
		return `{"methodConfig":[{"name":[{}],"retryPolicy":` + s + `}]}`
	}
	for name, config := range map[string]string{
		"no JSON":         `{`,
		"hedging":         `{"methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2}}]}`,
		"one attempt":     policy(`{"maxAttempts":1,"initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":[14]}`),
		"no backoff":      policy(`{"maxAttempts":2,"maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":[14]}`),
		"backoff in ms":   policy(`{"maxAttempts":2,"initialBackoff":"100ms","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":[14]}`),
		"an unknown code": policy(`{"maxAttempts":2,"initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["BUSY"]}`),
		"no codes":        policy(`{"maxAttempts":2,"initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":2}`),
		"no multiplier":   policy(`{"maxAttempts":2,"initialBackoff":"1s","maxBackoff":"1s","retryableStatusCodes":[14]}`),
	} {
		if _, err := grpcretry.ImportServiceConfig([]byte(config)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzImportServiceConfig(f *testing.F) {
	f.Add([]byte(`{"methodConfig":[{"name":[{}],"timeout":"1s","retryPolicy":{"maxAttempts":4,"initialBackoff":"0.1s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":[14]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		imports, err := grpcretry.ImportServiceConfig(data)
		if err != nil {
			return
		}
		for _, im := range imports {
			if err := im.Policy.Validate(); err != nil {
				t.Errorf("the policy is refused: %v", err)
			}
		}
	})
}
