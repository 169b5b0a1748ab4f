package lint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
)

// linted retries three times, every second, and on 403.
const linted = `package PKG

import (
	"net/http"
	"time"
)

func Fetch(c *http.Client, url string) (resp *http.Response, err error) {
	for i := 0; i < 4; i++ {
		if resp, err = c.Get(url); err == nil {
			switch resp.StatusCode {
			case 403, 503:
				resp.Body.Close()
			default:
				return resp, nil
			}
		}
		time.Sleep(time.Second)
	}
	return nil, err
}
`

const lintPolicyText = `service: checkout
dependencies:
  payments: {url: "https://payments.internal", max_retries: 2, classify: {http_503: terminal}}
  search: {url: "https://search.internal", classify: {http_403: transient}}
lint:
  key_headers: [X-Request-Token]
  code:
    payments: [pay/...]
    search: [search]
`

// lintModule writes a module of two packages and its policy file.
func lintModule(t *testing.T, policy string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "forbear.yaml": policy,
		"pay/pay.go": strings.Replace(linted, "PKG", "pay", 1), "search/search.go": strings.Replace(linted, "PKG", "search", 1),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What a policy allows is what the linter allows in the code that calls the
// dependency: its attempts, and the answers that Decide retries under it.
func TestLintPolicy(t *testing.T) {
	dir := lintModule(t, lintPolicyText)
	r := clitest.Run(t, Command(), "", "-C", dir)
	for _, want := range []string{
		"pay/pay.go:9:2: warning: retries http.Client.Get up to 4 times; at most 3 attempts are allowed for payments [FB1011",
		"pay/pay.go:9:2: error: retries http.Client.Get on status 403, 503 [FB1035",
	} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("got\n%s%s\nwant %q", r.Out, r.Errors, want)
		}
	}
	if strings.Contains(r.Out, "search/search.go:9:2: error: retries http.Client.Get on status") || strings.Contains(r.Out, "for search") {
		t.Errorf("got\n%s\nwant 403 retried by search, and four attempts", r.Out)
	}
	if r := clitest.Run(t, Command(), "", "-C", dir, "--policy", "none"); strings.Contains(r.Out, "FB1011") || !strings.Contains(r.Out, "search.go:9:2: error: retries http.Client.Get on status 403 [FB1035") {
		t.Errorf("without the policy: got\n%s\nwant the standard's answers and ranges", r.Out)
	}
}

// The printed settings are the policy's, in a form that the other running forms
// read.
func TestLintPolicyAsSettings(t *testing.T) {
	dir := lintModule(t, lintPolicyText)
	r := clitest.Run(t, Command(), "", "-C", dir, "--print-settings")
	if r.Code != cli.ExitOK {
		t.Fatalf("got %d: %s", r.Code, r.Errors)
	}
	if err := os.Remove(filepath.Join(dir, "forbear.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".forbear-lint.yaml"), []byte(r.Out), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := clitest.Run(t, Command(), "", "-C", dir, "--print-settings"); again.Out != r.Out || !strings.Contains(r.Out, "max_attempts: 3") {
		t.Errorf("got\n%s\nwant\n%s", again.Out, r.Out)
	}
}

// A policy file that cannot be used keeps the run from judging, with the place
// of the fault.
func TestLintPolicyFaults(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"out of range", "max_retries: 2", "max_retries: 20", "forbear.yaml:3:"},
		{"pattern", "[pay/...]", "[/pay]", "not below the module's root"},
		{"header", "[X-Request-Token]", `["X Token"]`, "is not the name of a header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := lintModule(t, strings.Replace(lintPolicyText, tt.from, tt.to, 1))
			if r := clitest.Run(t, Command(), "", "-C", dir); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, tt.want) {
				t.Errorf("got %d, %s; want %d and %q", r.Code, r.Errors, cli.ExitUsage, tt.want)
			}
		})
	}
}

// A waiver that an approver has signed lifts findings in the code that it
// names; one without a signature, or with another reason than was signed, lifts
// none, and the user is told why.
func TestLintWaivers(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Fatal("ssh-keygen is missing: apt-get install openssh-client")
	}
	day := func(days int) string { return time.Now().AddDate(0, 0, days).Format(time.DateOnly) }
	text := lintPolicyText + fmt.Sprintf(`waivers:
  - id: W-1
    rule: R-1
    code: [pay/...]
    reason: goes with the old vendor
    owner: bob
    ticket: ARCH-118
    created: %s
    expires: %s
`, day(-10), day(100))
	keys := t.TempDir()
	key, allowed := filepath.Join(keys, "alice"), filepath.Join(keys, "allowed")
	sshKeygen := func(stdin string, args ...string) string {
		c := exec.CommandContext(t.Context(), "ssh-keygen", args...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("ssh-keygen %v: %v", args, err)
		}
		return string(out)
	}
	sshKeygen("", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(allowed, []byte(`alice namespaces="`+check.Namespace+`" `+string(public)), 0o600); err != nil {
		t.Fatal(err)
	}
	sign := func(text string) string {
		f, err := policyfile.Parse("forbear.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		signature := sshKeygen(string(check.Payload(f, &f.Waivers[0])), "-q", "-Y", "sign", "-n", check.Namespace, "-f", key)
		text += "    approvals:\n      - by: alice\n        signature: |\n"
		for line := range strings.Lines(signature) {
			text += "          " + line
		}
		return text
	}
	signed := sign(text)
	dependency := sign(strings.Replace(text, "code: [pay/...]", "dependency: payments", 1))
	for _, tt := range []struct {
		name, policy string
		lifted       bool
		note         string
	}{
		{"signed", signed, true, ""},
		{"unsigned", text, false, "forbear.yaml:11:5: a waiver does not count: waiver W-1 has no approval: forbear policy payload prints what to sign [FC905]"},
		{"a dependency's", dependency, true, ""},
		{"a dependency's, whose code is more now", strings.Replace(dependency, "payments: [pay/...]", "payments: [pay/..., search]", 1), false, "is not valid [FC907]"},
		{"another reason", strings.Replace(signed, "old vendor", "new vendor", 1), false, "is not valid [FC907]"},
		{"more code", strings.Replace(signed, "code: [pay/...]", "code: [pay/..., search]", 1), false, "is not valid [FC907]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := lintModule(t, tt.policy)
			r := clitest.Run(t, Command(), "", "-C", dir, "--allowed-signers", allowed)
			if got := !strings.Contains(r.Out, "pay.go:9:2: error: retries http.Client.Get on failure and waits 1s"); got != tt.lifted {
				t.Errorf("lifted %v, want %v:\n%s", got, tt.lifted, r.Out)
			}
			if !strings.Contains(r.Out, "search.go:9:2: error: retries http.Client.Get on failure and waits 1s") {
				t.Errorf("got\n%s\nwant the finding in search", r.Out)
			}
			if !strings.Contains(r.Errors, tt.note) || tt.note == "" && r.Errors != "" {
				t.Errorf("got note %q, want %q", r.Errors, tt.note)
			}
		})
	}
}
