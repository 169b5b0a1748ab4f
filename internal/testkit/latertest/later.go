// Package latertest builds what is to be tested as a later version of forbear would
// have it: with a step of the schema more, beside which this version works. Tests run
// it beside this version, and after it.
package latertest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Step is the step that a later version has, as the store names it. It does to the
// tables that are written all the time what later versions do: a column, and an index.
const (
	Step = "9000_later"
	text = `-- Works beside 0150
ALTER TABLE forbear_messages ADD COLUMN later TEXT;
ALTER TABLE forbear_deliveries ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
CREATE INDEX forbear_deliveries_later ON forbear_deliveries (later);
`
)

// Go runs the Go tool with the step among the files of sqlstore, in the folder of the
// test: args are those of build, or of test -c.
func Go(t testing.TB, args ...string) {
	t.Helper()
	command := func(args ...string) *exec.Cmd { // on the checkout's sqlstore, whichever the test itself is built with
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(os.Environ(), "GOWORK=")
		return cmd
	}
	root, err := command("list", "-m", "-f", "{{.Dir}}", "github.com/forbear-go/forbear").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	step, overlay := filepath.Join(dir, "step.sql"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(strings.TrimSpace(string(root)), "sqlstore/migrations", Step+".sql"): step,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{step: text, overlay: string(list)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The verb comes first, its flags follow.
	args = append([]string{args[0], "-overlay", overlay}, args[1:]...)
	if out, err := command(args...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}
