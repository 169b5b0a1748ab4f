package check

import (
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/report"
)

// A call that is made once takes as long as its timeout lets it, and its figure is
// that of a worst case all the same.
func TestLongestOfOneAttempt(t *testing.T) {
	const service = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: pay}\nspec:\n  hosts: [pay]\n  http:\n  - route: [{destination: {host: pay}}]\n    retries: {attempts: 0}\n"
	const rule = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: pay}\nspec:\n  rules:\n  - backendRefs: [{name: pay, port: 80}]\n    retry: {attempts: 0}\n"
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{service + "    timeout: 120s\n", 2 * time.Minute},
		{service + "    timeout: 3s\n", 3 * time.Second},
		{service, math.MaxInt64},
		{rule + "    timeouts: {request: 120s}\n", 2 * time.Minute},
		{rule, math.MaxInt64},
	} {
		got := Run(ReadAll([]Input{{Name: "a.yaml", Data: []byte(c.text)}}).Sources, Options{})
		if len(got.Loads) != 1 || got.Loads[0].Duration != c.want {
			t.Errorf("got %+v, want %s\n%s", got.Loads, c.want, c.text)
		}
		for _, f := range got.Findings {
			if f.Severity > report.Note {
				t.Errorf("%s of a call that is not retried\n%s", f.ID, c.text)
			}
		}
	}
}
