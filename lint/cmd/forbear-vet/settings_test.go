//forbear:plain it drives the go command
package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// six attempts six times, with full jitter and on 403.
const six = `package m

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

func Fetch(c *http.Client, url string) (*http.Response, error) {
	for i := 0; i < 6; i++ {
		resp, err := c.Get(url)
		if err == nil {
			switch resp.StatusCode {
			case 403, 503:
				resp.Body.Close()
			default:
				return resp, nil
			}
		}
		time.Sleep(rand.N(time.Second << i))
	}
	return nil, errors.New("exhausted")
}
`

// TestVetSettings: the tool takes the settings of forbear lint, from a file and
// from flags, and a changed file is seen although the go command caches.
func TestVetSettings(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "forbear-vet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("m/go.mod", "module example.com/m\n\ngo 1.26\n")
	write("m/client/client.go", strings.Replace(six, "package m", "package client", 1))
	vet := func(env string, flags ...string) string {
		cmd := exec.Command("go", append(append([]string{"vet", "-vettool=" + tool}, flags...), "./...")...)
		cmd.Dir = filepath.Join(dir, "m")
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath", env)
		out, _ := cmd.CombinedOutput() // a finding is an error
		return string(out)
	}
	const status, attempts = "FB1035: retries http.Client.Get on status 403", "at most 3 attempts are allowed"
	write("m/.forbear-lint.yaml", "retryable: [403]\n")
	if out := vet(""); out != "" {
		t.Errorf("retryable: got\n%s\nwant nothing", out)
	}
	write("m/.forbear-lint.yaml", "retryable: [403]\nconfidence: medium\ndependencies:\n- {name: pay, code: [client], max_attempts: 3, retryable: [403]}\n")
	if out := vet(""); !strings.Contains(out, attempts+" for pay") || strings.Contains(out, status) {
		t.Errorf("a dependency's: got\n%s\nwant %s", out, attempts)
	}
	other := write("other.yaml", "disable: [FB1035]\n")
	if out := vet("FORBEAR_LINT_CONFIG="+other, "-settings={max_attempts: 3}", "-confidence=medium"); !strings.Contains(out, attempts) || strings.Contains(out, status) {
		t.Errorf("the environment and flags: got\n%s\nwant %s", out, attempts)
	}
	write("m/.forbear-lint.yaml", "retriable: [403]\n")
	if out := vet(""); !strings.Contains(out, ".forbear-lint.yaml:1:1: unknown key \"retriable\"") {
		t.Errorf("bad settings: got\n%s\nwant the fault", out)
	}
}

// TestVersionOfWaivers: the go command learns of it when a waiver ends, which it
// cannot do for those of a flag.
func TestVersionOfWaivers(t *testing.T) {
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".forbear-lint.yaml", []byte("waivers:\n- {rule: R-1, code: [a], reason: r, expires: 2027-06-30}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	on := func(day int) string {
		var b strings.Builder
		if err := version(&b, time.Date(2027, 6, day, 12, 0, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if on(1) != on(29) || on(29) == on(33) {
		t.Errorf("got %s, %s and %s; want another one after the last day alone", on(1), on(29), on(33))
	}
	tool := filepath.Join(t.TempDir(), "forbear-vet")
	cmd := exec.Command("go", "build", "-o", tool, "github.com/forbear-go/forbear/lint/cmd/forbear-vet")
	cmd.Dir = home
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out, err := exec.Command(tool, "-settings={waivers: [{rule: R-1, code: [a], reason: r, expires: 2027-06-30}]}", "x.cfg").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "must be in a file") {
		t.Errorf("got %v, %s; want a refusal", err, out)
	}
}
