package serve

import (
	"os"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// A retention that breaks a promise is refused by the name of its flag, and leaves
// no database behind.
func TestServeRefusesRetentions(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"--history-retention=24h", "--history-retention 24h0m0s is below 168h0m0s"},
		{"--body-retention=10m", "--body-retention 10m0s is below 1h0m0s"},
		{"--body-retention=-1h", "--body-retention -1h0m0s is below"},
		{"--body-retention=200h", "--body-retention 200h0m0s is longer than --history-retention 168h0m0s"},
	} {
		db := t.TempDir() + "/forbear.db"
		got := clitest.Run(t, Command(), "", "--listen", "127.0.0.1:0", "--admin", "off", "--database", db, tt.flags)
		if _, err := os.Stat(db); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, tt.want) || err == nil {
			t.Errorf("%s: %+v, %v", tt.flags, got, err)
		}
	}
}

// The limit of payloads is a size, of at most 1MiB.
func TestServeRefusesPayloadLimits(t *testing.T) {
	for flag, want := range map[string]string{
		"--max-payload=2MiB": "--max-payload 2097152 is above 1048576 bytes, 1MiB",
		"--max-payload=0":    "want 1 byte to 1024MiB",
		"--max-payload=big":  "want a size such as 64KiB or 1MiB",
	} {
		got := clitest.Run(t, Command(), "", "--listen", "127.0.0.1:0", "--admin", "off", "--database", t.TempDir()+"/forbear.db", flag)
		if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, want) {
			t.Errorf("%s: %+v", flag, got)
		}
	}
}
