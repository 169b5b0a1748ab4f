package version

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

func TestVersion(t *testing.T) {
	text := clitest.Run(t, Command(), "")
	if text.Code != cli.ExitOK || !strings.HasPrefix(text.Out, "forbear ") || !strings.Contains(text.Out, runtime.Version()) {
		t.Errorf("text: %+v", text)
	}
	var b Build
	got := clitest.Run(t, Command(), "", "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &b); err != nil || b != Read() || b.Version == "" || b.Platform == "" {
		t.Errorf("json: %v, %+v", err, got)
	}
	if got := clitest.Run(t, Command(), "", "-o", "yaml"); got.Code != cli.ExitUsage || got.Out != "" {
		t.Errorf("yaml: %+v", got)
	}
}
