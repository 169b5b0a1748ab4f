package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// forbear is the command, built once for the tests that need it.
var forbear = sync.OnceValues(func() (string, error) {
	name := filepath.Join(bin, "forbear")
	cmd := exec.Command("go", "build", "-o", name, "github.com/forbear-go/forbear/cmd/forbear")
	cmd.Env = append(os.Environ(), "GOWORK=") // no example requires the program, which the checkout has
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return name, nil
})

func command(t *testing.T) string {
	t.Helper()
	name, err := forbear()
	if err != nil {
		t.Fatalf("%v\n%s", err, name)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The policy passes the gate, and the gateway does by it what the README shows: the shop,
// in Python, has its charge after two retries, and one without a key is sent once. What
// compose.yaml starts is started here on this machine, with its addresses on loopback;
// tools/package holds the file to what Docker would read.
func TestGateway(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("python3 is missing: sudo apt-get install python3")
		}
		t.Skip("NOT RUN, python3 is missing: sudo apt-get install python3")
	}
	checked := start(t, nil, command(t), "check", "gateway/policy.yaml").ends(t)
	has(t, checked, map[string]int{"0 errors, 0 warnings, 0 notes": 1})

	upstream, gateway, health := address(t), address(t), address(t)
	payments := start(t, nil, python, "-u", "gateway/payments.py", portOf(upstream))
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	mapped := strings.Replace(read(t, "gateway/policy.yaml"), "http://payments:8000", "http://"+upstream, 1)
	if err := os.WriteFile(policy, []byte(mapped), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := start(t, nil, command(t), "serve", "--config", policy, "--listen", gateway, "--admin", "off", "--metrics", health, "--drain-timeout", "20s")
	serve.until(t, "forbear gateway on")
	has(t, start(t, nil, command(t), "health", "http://"+health+"/health/ready").ends(t), map[string]int{"200": 1})
	waitFor(t, "http://"+upstream)

	shop := start(t, []string{"PAYMENTS_URL=http://" + gateway + "/payments"}, python, "-u", "gateway/shop.py").ends(t)
	said := payments.printed() + shop
	keys := regexp.MustCompile(`order 1 with key (\S+):`).FindAllStringSubmatch(said, -1)
	if len(keys) != 3 || keys[0][1] == "None" || keys[0][1] != keys[1][1] || keys[1][1] != keys[2][1] {
		t.Errorf("the first order came with the keys %q, want one key three times", keys)
	}
	has(t, serve.interrupt(t), map[string]int{"msg=retry ": 2, "reason=no_idempotency_key": 1})
	// The README's figures are those of a run: only the key is another one.
	_, want, _ := strings.Cut(read(t, "gateway/README.md"), "--exit-code-from shop\n")
	want, _, _ = strings.Cut(want, "\n```")
	key := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	for line := range strings.SplitSeq(want, "\n") {
		line = key.ReplaceAllString(strings.TrimSpace(line), keys[0][1])
		if !strings.Contains(said, line) {
			t.Errorf("the README shows %q, and they printed\n%s", line, said)
		}
	}
}
