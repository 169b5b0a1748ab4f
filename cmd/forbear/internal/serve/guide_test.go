package serve

import (
	"os"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/policyfile"
)

// TestGatewayGuide: the policy file of the guide is one that serve would take.
func TestGatewayGuide(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/guides/gateway-routes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the guide has no policy file")
	}
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

// TestOwnerOfAnother: the log says that another service retries the calls of a
// dependency, before one has failed.
func TestOwnerOfAnother(t *testing.T) {
	s := startServe(t, "--admin", "off", "--config", clitest.File(t, "policy.yaml", `
service: checkout
dependencies:
  ours: {url: 'http://127.0.0.1:1', owner: checkout}
  theirs: {url: 'http://127.0.0.1:1', owner: ledger-team}
gateway:
  listen: 127.0.0.1:0
  routes: [{prefix: /a, methods: [GET], dependency: theirs}, {prefix: /b, dependency: ours}]
`))
	if !strings.Contains(s.out, "GET /a") {
		t.Errorf("the greeting does not tell the routes apart: %s", s.out)
	}
	s.stop()
	if log := s.log.String(); strings.Count(log, "not retried here") != 1 || !strings.Contains(log, "owner=ledger-team") {
		t.Errorf("the log: %s", log)
	}
}
