package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/policyfile/foreign"
)

// A folder with a file of each kind is judged as a whole, and each of them is taken for
// what it is.
func TestTree(t *testing.T) {
	dir := folder(t, map[string]string{"policy.yaml": failing, "compose.yaml": "services: {a: {healthcheck: {retries: 3}}}\n", "logo.svg": "<svg/>"})
	const from = "../../../../policyfile/foreign/testdata"
	for _, format := range foreign.Formats() {
		paths, err := filepath.Glob(filepath.Join(from, format+"-bad.*"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s has the files %v (%v)", format, paths, err)
		}
		data, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(paths[0])), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	got := clitest.Run(t, Command(), "", ".")
	if want := "; 1 file not recognized\nforbear explain FC201 says more\n"; got.Code != cli.ExitFound || !strings.HasSuffix(got.Out, want) || got.Errors != "" {
		t.Errorf("exit code %d, want %q at the end of %s%s", got.Code, want, got.Out, got.Errors)
	}
	for _, format := range append(foreign.Formats(), "policy") {
		if !strings.Contains(got.Out, "\n"+format+"-bad.") && !strings.Contains(got.Out, "\n"+format+".yaml:") && !strings.HasPrefix(got.Out, format) {
			t.Errorf("nothing is said of %s", format)
		}
	}
}
