package forrst

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/forrst"
)

// The report for programs says of each file what was written, what a person has to
// rewrite, and why.
func TestForrstMigrateReport(t *testing.T) {
	t.Chdir(t.TempDir())
	const page = "| Code | Retryable |\n|---|---|\n| `X` | Yes |\n\n```php\nnew ErrorData(retryable: true);\n```\n\n" +
		"```json\n{\"errors\": [{\"code\": \"UNAVAILABLE\", \"retryable\": false}]}\n```\n\n" +
		"```json\n{\"result\": {\"retryable\": true}}\n```\n"
	for name, text := range map[string]string{"a.md": page, "clean.json": "{}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := clitest.Run(t, Command(), "", "migrate", "-o", "json", "a.md", "clean.json", "none.json")
	var r report
	if err := json.Unmarshal([]byte(got.Out), &r); err != nil || got.Code != cli.ExitUsage {
		t.Fatalf("%v: %+v", err, got)
	}
	want := report{[]document{
		{
			"a.md", true,
			[]forrst.Place{{Line: 10, Kind: "removed", What: "retryable removed"}, {Line: 10, Kind: "added", What: "retry extension added"}},
			[]forrst.Place{
				{Line: 1, Kind: "table", What: "a table has a column for retryable: only JSON examples are rewritten"},
				{Line: 6, Kind: "code", What: "an example in php names retryable: only JSON examples are rewritten"},
			},
			[]forrst.Place{{Line: 14, Kind: "data", What: "retryable is business data: not touched"}},
			"",
		},
		{"clean.json", false, []forrst.Place{}, []forrst.Place{}, []forrst.Place{}, ""},
	}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	got = clitest.Run(t, Command(), "", "migrate", "a.md")
	const lines = "a.md:1: a table has a column for retryable: only JSON examples are rewritten\n" +
		"a.md:6: an example in php names retryable: only JSON examples are rewritten\n" +
		"a.md:14: note: retryable is business data: not touched\n"
	if got.Code != cli.ExitFound || got.Errors != lines {
		t.Errorf("as text: %+v, want %q", got, lines)
	}
}
