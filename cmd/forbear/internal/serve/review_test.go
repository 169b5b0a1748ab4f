package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A policy file that is gone, or is no file that can be read, is told once, also when it is back. The
// metrics show whether the file is in charge.
func TestPolicyFileThatIsLost(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "dependencies:\n  up: {url: '" + up.URL + "'}\ngateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: /, dependency: up}\n"
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(path) // a folder is not replaced
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
	}
	put(policy)
	admin := closed(t)
	s := startServe(t, "--config", path, "--reload-every", "20ms", "--admin", strings.TrimPrefix(admin, "http://"))
	inCharge := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("policy_file_in_charge %d", want), func() bool {
			_, page := status(t, "GET", admin+"/metrics", "")
			return strings.Contains(page, fmt.Sprintf("\npolicy_file_in_charge %d\n", want))
		})
	}
	const lost, back = "the policy file cannot be read", "the policy file can be read again"
	for i, lose := range []func() error{
		func() error { return os.Remove(path) },
		func() error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
		func() error { _ = os.Remove(path); return os.Symlink(path+".not-there", path) },
	} {
		inCharge(1)
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		inCharge(0)
		before := s.log.String()
		put(policy)
		inCharge(1)
		if n, m := strings.Count(before, lost), strings.Count(s.log.String(), back); n != i+1 || m != i+1 || strings.Count(s.log.String(), lost) != i+1 {
			t.Errorf("loss %d: told %d times, and %d times that it is back\n%s", i+1, n, m, s.log)
		}
	}
	if strings.Contains(s.log.String(), "is in charge") {
		t.Errorf("what came back was taken for another\n%s", s.log)
	}
	put("dependencies: {up: {max_retries: 99}}\n")
	inCharge(0)
	if err := os.Remove(path); err != nil { // as refused as before
		t.Fatal(err)
	}
	eventually(t, "the loss", func() bool { return strings.Count(s.log.String(), lost) == 4 })
	inCharge(0)
	put(policy)
	inCharge(1)
}

// What forbear check calls an error is told when a policy file comes into charge, by its
// rule and its place, and is served. What a waiver lifts is none, whoever has signed it.
func TestPolicyFileThatCheckRefuses(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	put := func(text, more string) {
		t.Helper()
		text = "service: checkout\ndependencies:\n  up:\n    url: '" + up.URL + "'\n    owner: checkout\n" + text + "gateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: /, dependency: up}\n" + more
		if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
	}
	put("    per_attempt: 50s\n    total: 30s\n", "")
	s := startServe(t, "--config", path, "--reload-every", "20ms")
	const told = "forbear check finds an error"
	eventually(t, "the review", func() bool { return strings.Contains(s.log.String(), told) })
	if log := s.log.String(); !strings.Contains(log, "rule=FC207") || !strings.Contains(log, path+":6:18: ") || strings.Count(log, told) != 1 {
		t.Errorf("got %s", log)
	}
	s.get(t)
	waiver := "waivers:\n  - id: w1\n    rule: R-6\n    dependency: up\n    reason: the ledger is replaced\n    owner: ada\n    ticket: T-1\n    created: " +
		time.Now().Format(time.DateOnly) + "\n    expires: " + time.Now().AddDate(0, 1, 0).Format(time.DateOnly) + "\n    approvals: [{by: bob, signature: x}]\n"
	put("    retry_unsent: true\n", waiver)
	eventually(t, "the reload", func() bool { return strings.Contains(s.log.String(), "is in charge") })
	var more strings.Builder
	for i := range 25 {
		fmt.Fprintf(&more, "  up%d: {url: '%s', owner: checkout, per_attempt: 50s, total: 30s}\n", i, up.URL)
	}
	put(more.String(), "")
	eventually(t, "the review of many", func() bool { return strings.Contains(s.log.String(), "more=5") })
	if n := strings.Count(s.log.String(), told); n != 1+20 || strings.Contains(s.log.String(), "FC302") || strings.Contains(s.log.String(), "FC907") {
		t.Errorf("%d findings were told\n%s", n, s.log)
	}
}
