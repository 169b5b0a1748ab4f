package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// Serve does not begin with a token that can be guessed, whatever that opens.
func TestServeRefusesShortTokens(t *testing.T) {
	for _, variable := range []string{cli.EnvAPIToken, cli.EnvAdminToken, cli.EnvMetricsToken} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "a")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // where it begins, it ends no sooner
			defer cancel()
			var text clitest.Buffer
			code := Command().Run(ctx, &cli.Streams{Out: &text, Err: &text}, []string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--database", t.TempDir() + "/f.db"})
			if code != cli.ExitUsage || !strings.Contains(text.String(), variable+": a token has at least 16 characters") {
				t.Errorf("serve began with it: %d %s", code, &text)
			}
		})
	}
}
