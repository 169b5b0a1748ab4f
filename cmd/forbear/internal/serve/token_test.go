package serve

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// The API's token is one that cannot be guessed, wherever it comes from.
func TestAPITokenIsLong(t *testing.T) {
	const good = "sixteen-letters!"
	for _, c := range []struct {
		variable, file string // "-": no file
		want           string // empty: refused
	}{
		{"a", "-", ""},
		{" ", "-", ""},
		{"\n", "-", ""},
		{"               a", "-", ""},
		{good[1:], "-", ""},
		{good, "-", good},
		{" " + good + "\n", "-", good},
		{"a", good + "\n", good},
		{"", "a", ""},
		{"", "", ""},
		{good, "a", ""},
	} {
		t.Setenv(cli.EnvAPIToken, c.variable)
		d := &delivery{}
		if c.file != "-" {
			d.tokenFile = clitest.File(t, "token", c.file)
		}
		got, err := d.token()
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q and the file %q: got %q, %v", c.variable, c.file, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "at least 16 characters") || c.file == "-" && !strings.Contains(err.Error(), cli.EnvAPIToken)) {
			t.Errorf("%q: %v does not say what to do", c.variable, err)
		}
	}
	t.Setenv(cli.EnvAPIToken, "")
	if got, err := (&delivery{}).token(); got != "" || err != nil {
		t.Errorf("without one: got %q, %v", got, err)
	}
	if t.Failed() {
		return // serve would begin, and not end
	}
	t.Setenv(cli.EnvAPIToken, "a")
	if got := clitest.Run(t, Command(), "", "--listen", "127.0.0.1:0", "--admin", "off", "--database", t.TempDir()+"/f.db"); got.Code == cli.ExitOK || !strings.Contains(got.Errors, "at least 16 characters") {
		t.Errorf("serve began with it: %d %s", got.Code, got.Errors)
	}
}
