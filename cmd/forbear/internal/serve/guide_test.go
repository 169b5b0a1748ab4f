package serve

import (
	"os"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile"
)

// TestGatewayGuide: the policy file of the guide is one that serve would take.
func TestGatewayGuide(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/guides/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the guide has no policy file")
	}
	t.Setenv("PAYMENTS_CLIENT_SECRET", "secret")
	f, err := policyfile.Parse("policy.yaml", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Servable(true); err != nil {
		t.Error(err)
	}
	if n := len(f.Gateway.Routes); n != 3 || !f.Gateway.Routes[2].Stream || f.Gateway.AccessLog != 0.1 || len(f.Gateway.Listen) != 2 {
		t.Errorf("it says something else: %+v", f.Gateway)
	}
}
