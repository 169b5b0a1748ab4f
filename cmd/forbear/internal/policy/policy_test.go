package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

const passing = "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET]}\n"

func TestPolicyCommand(t *testing.T) {
	old, is := clitest.File(t, "old.yaml", passing), clitest.File(t, "new.yaml", strings.Replace(passing, "strict: true", "strict: true, max_retries: 5, per_attempt: 1s", 1))
	if r := clitest.Run(t, Command(), "", "diff", old, is); r.Code != cli.ExitFound || !strings.Contains(r.Out, "a call to b is now tried up to 6 times, before 4") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	if r := clitest.Run(t, Command(), "", "diff", old, old); r.Code != cli.ExitOK || r.Out != "" {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
	if r := clitest.Run(t, Command(), "", "schema"); r.Code != cli.ExitOK || !json.Valid([]byte(r.Out)) {
		t.Errorf("exit code %d", r.Code)
	}
	if r := clitest.Run(t, Command(), "", "payload", old, "W-1"); r.Code != cli.ExitUsage {
		t.Errorf("exit code %d for a waiver that is not there", r.Code)
	}
}

// What comes from the environment stays there: a reviewer has another one, and what is
// written is a file like the one that was read.
func TestFormat(t *testing.T) {
	const text = "service: a\nprofiles:\n  p: {budget: {ratio: 7%}}\ndependencies:\n  b: {extends: p, url: {env: B_URL}, health: {endpoint: {env: B_HEALTH}, min_success: 58%}}\n"
	for _, url := range []string{"", "https://internal.example"} {
		t.Setenv("B_URL", url)
		r := clitest.Run(t, Command(), "", "format", clitest.File(t, "p.yaml", text))
		for _, want := range []string{"url: {env: B_URL}\n", "endpoint: {env: B_HEALTH}\n", "ratio: 7%\n", "min_success: 58%\n"} {
			if r.Code != cli.ExitOK || !strings.Contains(r.Out, want) {
				t.Errorf("exit code %d, want %s: %s%s", r.Code, want, r.Out, r.Errors)
			}
		}
		if again := clitest.Run(t, Command(), "", "format", clitest.File(t, "p.yaml", r.Out)); again.Out != r.Out {
			t.Errorf("the second time: %s%s", again.Out, again.Errors)
		}
	}
}

// What cannot be exported is said by its name.
func TestExportRefuses(t *testing.T) {
	path := clitest.File(t, "p.yaml", passing+"consumers:\n  orders: {owner: a, dedup: 8d, dead_letter: {queue: q, alert: x}}\n")
	for _, c := range []struct{ to, dependency, want string }{
		{"", "b", "export to what? give --to envoy, istio"},
		{"envoi", "b", "did you mean envoy?"},
		{"envoy", "bb", "did you mean b?"},
		{"envoy", "orders", "orders is of kind event"},
	} {
		r := clitest.Run(t, Command(), "", "export", "--to", c.to, "--dependency", c.dependency, path)
		if r.Code != cli.ExitUsage || r.Out != "" || !strings.Contains(r.Errors, c.want) {
			t.Errorf("%q %q: exit code %d: %s%s", c.to, c.dependency, r.Code, r.Out, r.Errors)
		}
	}
	if r := clitest.Run(t, Command(), "", "export", "--to", "envoy", path); r.Code != cli.ExitOK || !strings.Contains(r.Out, "static_resources:") {
		t.Errorf("exit code %d: %s%s", r.Code, r.Out, r.Errors)
	}
}
