//forbear:plain nothing runs at once
package policy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

const passing = "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET]}\n"

func TestPolicyCommand(t *testing.T) {
	old, is := clitest.File(t, "old.yaml", passing), clitest.File(t, "new.yaml", strings.Replace(passing, "strict: true", "strict: true, max_retries: 5, per_attempt: 1s", 1))
	if r := clitest.Run(t, Command(), "", "diff", old, is); r.Code != cli.ExitFound || !strings.Contains(r.Out, "a call to b is now tried up to 6 times, it was 4") {
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
		{"envoy", "orders", "orders has kind event"},
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

// A count that a waiver lifts is exported only with the signatures that check asks for.
func TestExportRelies(t *testing.T) {
	keygen := func(stdin string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "ssh-keygen", args...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("ssh-keygen %v: %v (apt-get install openssh-client)", args, err)
		}
		return string(out)
	}
	key := filepath.Join(t.TempDir(), "iris")
	keygen("", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signers := clitest.File(t, "allowed", `iris namespaces="forbear-waiver-iab" `+string(public))
	created, expires := time.Now().AddDate(0, 0, -1).Format(time.DateOnly), time.Now().AddDate(0, 1, 0).Format(time.DateOnly)
	file := func(expires, signature string) string {
		return "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET], max_retries: 9}\n  c: {owner: a, strict: true, methods: [GET]}\n" +
			"waivers:\n  - {id: W-1, rule: R-2, dependency: b, reason: x, owner: dana, ticket: T-1, created: " + created + ", expires: " + expires + ", approvals: [{by: iris, role: iab" + signature + "}]}\n"
	}
	payload := clitest.Run(t, Command(), "", "payload", clitest.File(t, "p.yaml", file(expires, "")), "W-1")
	armored := keygen(payload.Out, "-q", "-Y", "sign", "-n", "forbear-waiver-iab", "-f", key)
	signed := ", signature: " + strconv.Quote(armored)
	header := "# Waiver W-1 lifts R-2 until " + expires + ": export again, without it, by then.\n"
	for _, c := range []struct {
		name, text, to, dependency, signers string
		code                                int
		want                                string // in the output, or in the errors of what is refused
	}{
		{"unsigned", file(expires, ""), "istio", "b", "", cli.ExitUsage, "waiver W-1 by iris has no signature: forbear policy payload prints what to sign: have it signed (forbear policy payload), and give --allowed-signers FILE"},
		{"not verified", file(expires, signed), "istio", "b", "", cli.ExitUsage, "cannot be verified: give --allowed-signers FILE: have it signed"},
		{"verified", file(expires, signed), "istio", "b", signers, cli.ExitOK, header},
		{"verified, for JSON", file(expires, signed), "grpc", "b", signers, cli.ExitOK, "methodConfig"},
		{"another count", strings.Replace(file(expires, signed), "max_retries: 9", "max_retries: 10", 1), "istio", "b", signers, cli.ExitUsage, "the signature of iris on waiver W-1 is not valid"},
		{"expired", file(created, signed), "istio", "b", signers, cli.ExitUsage, "its waiver expired on " + created},
		{"a dependency that relies on none", file(expires, ""), "istio", "c", "", cli.ExitOK, "attempts: 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := clitest.Run(t, Command(), "", "export", "--to", c.to, "--dependency", c.dependency, "--allowed-signers", c.signers, clitest.File(t, "p.yaml", c.text))
			if said := r.Out + r.Errors; r.Code != c.code || !strings.Contains(said, c.want) || r.Code != cli.ExitOK && r.Out != "" {
				t.Errorf("exit code %d, want %d and %q: %s", r.Code, c.code, c.want, said)
			}
			if c.code == cli.ExitOK && c.dependency == "c" && strings.Contains(r.Out, "Waiver") {
				t.Errorf("a waiver that it does not rely on: %s", r.Out)
			}
		})
	}
}
