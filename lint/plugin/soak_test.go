package plugin

import (
	"os"
	"os/exec"
	"testing"
)

// TestSoakGolangci builds golangci-lint with the plugin, which takes minutes,
// and runs it: the test is that of the module in integration.
func TestSoakGolangci(t *testing.T) {
	if os.Getenv("FORBEAR_SOAK") == "" {
		t.Skip("builds golangci-lint: FORBEAR_SOAK=1 runs it")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout", "15m", "./...")
	cmd.Dir = "integration"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
