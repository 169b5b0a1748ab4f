package driver

import (
	"flag"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update-mends", false, "write the golden files of TestMends anew")

// TestMends holds the fixes to golden files: what FILE becomes stands in FILE.golden.
// The mended module compiles, and passes the tests in it, which run it in virtual time.
func TestMends(t *testing.T) {
	const path = "testdata/mends.txtar"
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		if !strings.HasSuffix(f.Name, ".golden") {
			files[f.Name] = string(f.Data)
		}
	}
	dir := module(t, files)
	if code, _, errs := lintIn(t, dir, "--fix", "./..."); code == ExitUnjudged {
		t.Fatal(errs)
	}
	for i, f := range archive.Files {
		name, ok := strings.CutSuffix(f.Name, ".golden")
		if !ok {
			continue
		}
		got := read(t, dir, name)
		if !*update && got != string(f.Data) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, f.Data)
		}
		archive.Files[i].Data = []byte(got)
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, dir, "vet", "./...")
	goCommand(t, dir, "test", "-vet=off", "./...")
}
