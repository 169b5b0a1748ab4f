package explain

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

const pages = "../../../../docs/"

// Each reason says what it means and what changes it. The settings and the pages that it
// names exist, and its own page has it.
func TestReasonsAreExplained(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.FromSlash(pages + name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	policy, own := read("reference/policy.md"), read("reference/reasons.md")
	all := Reasons()
	if next := forbear.Reason(len(all) + 1); next.String() != "invalid" {
		t.Errorf("%v has no explanation", next)
	}
	for i, r := range all {
		if want := forbear.Reason(i + 1).String(); r.Name != want || r.Means == "" || r.Change == "" {
			t.Errorf("%s: got %+v", want, r)
		}
		for _, key := range r.Settings {
			if !strings.Contains(policy, "\n| `"+key+"` |") {
				t.Errorf("%s names the setting %s, which no policy has", r.Name, key)
			}
		}
		guide, ok := strings.CutPrefix(r.Guide, Docs)
		if !ok || read(guide) == "" {
			t.Errorf("%s: %s", r.Name, r.Guide)
		}
		if !strings.Contains(own, "\n### `"+r.Name+"`\n") {
			t.Errorf("the page has no heading for %s: make reference", r.Name)
		}
	}
}

// Whatever an error of the engine says, its reason is found in it.
func TestErrorsAreUnderstood(t *testing.T) {
	for r := reason.None + 1; r.String() != "invalid"; r++ {
		if edge.Sentinel(r) == nil {
			continue // no error of a call
		}
		for _, of := range []forbear.Error{
			{Dependency: "payments", Attempts: 1, Type: "unknown_error", RetryAfter: time.Minute},
			{Dependency: "payments", Attempts: 4, Type: "connection_closed", Err: errors.New("read tcp: EOF")},
		} {
			of.Reason = r
			for _, text := range []string{of.Error(), of.Explain(), "level=WARN msg=\"retries stopped\" reason=" + r.String()} {
				if got := inside(text); got != r.String() {
					t.Errorf("%q is taken for %s, and is of %s", text, got, r)
				}
			}
		}
	}
	for text, want := range map[string]string{
		"2026/11/30 16:49:02 WARN retry correlation_id=3 dependency=payments attempt=2 error_type=http_503": "retryable",
		"see forbear explain --help": "",
		"svc/unknown/policy.yaml:1:1: error: success has no retry owner [FC501]": "FC501",
		"": "", "the end": "",
	} {
		if got := inside(text); got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
}

func TestExplainWords(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"budget_exhausted", 0, "In the policy file: budget.min_retries, "},
		{"Budget-Exhausted", 0, "budget_exhausted (R-7)\n"},
		{"retry budget exhausted", 0, "budget_exhausted (R-7)\n"},
		{"breaker open", 0, "reasons.md#breaker_open\n"},
		{"'payments: no time left: the server asked for 1m40s (R-5; forbear explain after_exceeds_deadline) after 1 attempt'", 0, "after_exceeds_deadline (R-5)\n"},
		{"'payments: retry budget exhausted: 3 of 3 retries of this window (R-7)'", 0, "budget_exhausted (R-7)\n"},
		{"'level=WARN msg=stopped reason=no_idempotency_key status=0'", 0, "no_idempotency_key (R-6)\n"},
		{"'nginx.conf:9:7: error: payments: nothing bounds the tries [FC209 R-3]'", 0, "FC209 "},
		{"'max_retries 9 is outside 1-5 (R-2)'", 0, "R-2\n"},
		{"'some other text'", 2, "is not a reason, rule or finding"},
		{"http_503", 2, "forbear explain --status 503"},
		{"'connection refused'", 2, "forbear explain --error connection_refused"},
		{"''", 2, "is not a reason, rule or finding"},
		{"success", 0, "success\n"},
		{"r-7", 0, "Reasons: server_said_stop, "},
		{"R7", 0, "Reasons: server_said_stop, "},
		{"fc207", 0, "FC207 timeouts-do-not-fit: error\n"},
		{"fb1001", 0, "FB1001 FixedInterval"},
		{"-o json paced", 0, `"settings": [`},
		{"paced -o json", 0, `"page": "https://`},
		{"R-99", 2, "did you mean R-9?"},
		{"gremlins", 2, "docs/reference/reasons.md"},
		{"budget_exausted", 2, "did you mean budget_exhausted?"},
		{"paced -o yaml", 2, `unknown format "yaml"`},
		{"paced --status 503", 2, "a word goes without --status"},
		{"503", 2, "a status is --status 503"},
		{"paced --json", 2, "a word goes without --json"},
	} {
		got := clitest.Run(t, Command(), "", clitest.Words(tt.args)...)
		if got.Code != tt.code || !strings.Contains(got.Out+got.Errors, tt.want) {
			t.Errorf("explain %s: got %+v, want %q", tt.args, got, tt.want)
		}
	}
	for _, word := range words() {
		text, value := lookUp(word)
		if text == nil {
			t.Errorf("%s is not known", word)
		}
		if b, err := json.Marshal(value); err != nil || len(b) < 40 {
			t.Errorf("%s: %s, %v", word, b, err)
		}
		if got := clitest.Run(t, Command(), "", word); got.Code != cli.ExitOK || len(got.Out) < 40 {
			t.Errorf("%s: got %+v", word, got)
		}
	}
}
