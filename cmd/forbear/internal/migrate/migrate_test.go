//forbear:plain nothing runs at once
package migrate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// The status of an empty database is that steps are missing, and asking for it
// applies none; migrating applies all of them, and a second time nothing. Of a
// database that is not there nothing can be said, and asking does not make it: serve
// would take the file for the wish to deliver.
func TestMigrate(t *testing.T) {
	db := filepath.Join(t.TempDir(), "forbear.db")
	if got := clitest.Run(t, Command(), "", "--status", "--database", db); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "database "+db+" does not exist") {
		t.Errorf("no file: %+v", got)
	}
	if _, err := os.Stat(db); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("--status made the file: %v", err)
	}
	if err := os.WriteFile(db, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		args    []string
		code    int
		missing bool
	}{
		{"status before", []string{"--status"}, cli.ExitFound, true},
		{"status again", []string{"--status"}, cli.ExitFound, true},
		{"migrate", nil, cli.ExitOK, false},
		{"migrate again", nil, cli.ExitOK, false},
		{"status after", []string{"--status"}, cli.ExitOK, false},
	} {
		got := clitest.Run(t, Command(), "", append(tt.args, "--database", db)...)
		if got.Code != tt.code || strings.Contains(got.Out, "missing") != tt.missing || !strings.HasPrefix(got.Out, "0001  ") {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if got := clitest.Run(t, Command(), "", "--database", "mysql://x"); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "forbear: migrate: ") {
		t.Errorf("no database of ours: %+v", got)
	}
}
