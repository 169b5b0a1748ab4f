//forbear:plain nothing runs at once
package initialize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/check"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/policyfile"
)

const orders = `{"openapi": "3.1.0", "info": {"title": "Order API"}, "servers": [{"url": "https://orders.internal/v1"}],
"paths": {"/orders": {"get": {}, "post": {"parameters": [{"$ref": "#/components/parameters/Key"}]}},
"/orders/{id}": {"patch": {"parameters": [{"name": "X", "in": "header"}]}}},
"components": {"parameters": {"Key": {"name": "idempotency-key", "in": "header"}}}}`

func TestInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	r := clitest.Run(t, Command(), "", "--service", "checkout", "--openapi", clitest.File(t, "orders.json", orders),
		"--dependency", "search=http://search.internal", "--file", path)
	if r.Code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", r.Code, r.Errors)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  order-api:", "# PATCH /orders/{id} takes no Idempotency-Key", "idempotency: reuse     # some writes",
		"methods: [GET, POST, PATCH]", `url: "https://orders.internal/v1"`, "  search:",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the file lacks %q:\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "POST /orders takes no") {
		t.Error("a keyed operation is marked")
	}
	if r := clitest.Run(t, check.Command(), "", path); r.Code != cli.ExitOK {
		t.Errorf("the new file fails its check: %s", r.Out)
	}
	if r := clitest.Run(t, Command(), "", "--file", path); r.Code != cli.ExitUsage {
		t.Errorf("exit code %d: the file was replaced", r.Code)
	}
}

// What init writes passes check without a word, strict included, and serve starts with it.
func TestNextCommands(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		next bool // a gateway, and so serve
	}{
		{"nothing", nil, true},
		{"a dependency", []string{"--service", "checkout", "--dependency", "payments=https://payments.internal/v1", "--dependency", "search"}, true},
		{"a dependency without an address", []string{"--dependency", "payments"}, false},
		{"a document", []string{"--openapi", clitest.File(t, "orders.json", orders)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			r := clitest.Run(t, Command(), "", append(tt.args, "--file", path)...)
			if r.Code != cli.ExitOK || strings.Contains(r.Out, "forbear serve --config "+path) != tt.next {
				t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
			}
			if r := clitest.Run(t, check.Command(), "", "--strict", path); r.Code != cli.ExitOK || !strings.Contains(r.Out, "\n0 errors, 0 warnings, 0 notes\n") && !strings.HasPrefix(r.Out, "0 errors, 0 warnings, 0 notes\n") {
				t.Errorf("check: exit code %d: %s%s", r.Code, r.Out, r.Errors)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := policyfile.Parse(path, data)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Servable(false); f.HasGateway() != tt.next || tt.next && err != nil {
				t.Errorf("has a gateway: %v; %v", f.HasGateway(), err)
			}
		})
	}
}
