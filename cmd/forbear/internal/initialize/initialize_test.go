package initialize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/check"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

func TestInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	r := clitest.Run(t, Command(), "", "--service", "checkout", "--dependency", "search=http://search.internal", "--dependency", "orders", "--file", path)
	if r.Code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", r.Code, r.Errors)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  search:", `url: "http://search.internal"`, "  orders:", "owner: checkout", "idempotency: reuse",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the file lacks %q:\n%s", want, data)
		}
	}
	if r := clitest.Run(t, check.Command(), "", path); r.Code != cli.ExitOK {
		t.Errorf("the new file fails its check: %s", r.Out)
	}
	if r := clitest.Run(t, Command(), "", "--file", path); r.Code != cli.ExitUsage {
		t.Errorf("exit code %d: the file was replaced", r.Code)
	}
}
