package probe

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/sim"
	"github.com/forbear-go/forbear/policyfile"
)

// probe runs the command.
func probe(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = Command().Run(ctx, &cli.Streams{Out: &o, Err: &e}, args)
	return code, o.String(), e.String()
}

// TestWhatCannotBeJudged: a client that never calls, or fails where all is well, is no pass.
func TestWhatCannotBeJudged(t *testing.T) {
	for command, want := range map[string]string{
		"true {url}":            "it never called",
		"no-such-program {url}": "executable file not found",
		"sh -c 'exit 3' {url}":  "it never called",
	} {
		args := append([]string{"--"}, strings.Split(command, " ")...)
		if code, out, _ := probe(t.Context(), args...); code != cli.ExitUsage || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s", command, code, out)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "which client?"},
		{[]string{"--", "curl"}, "no argument has {url}"},
		{[]string{"-o", "yaml", "--", "curl", "{url}"}, "-o: want text, json, junit or policy"},
		{[]string{"-c", "R-4/999/GET", "--", "curl", "{url}"}, `no case is named "R-4/999/GET"`},
		{[]string{"--serve", "--listen", "0.0.0.0:0"}, "an address of this machine"},
	} {
		if code, _, errs := probe(t.Context(), c.args...); code != cli.ExitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
		}
	}
	if code, out, _ := probe(t.Context(), "--list"); code != cli.ExitOK || !strings.Contains(out, "R-4/503/GET") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// TestFormats: a report is JSON, JUnit's XML, a policy file and a page, and a policy that
// was set is found again.
func TestFormats(t *testing.T) {
	argv := []string{"--", "env", "PROBE_WRONG=", os.Args[0], "{url}", "{method}"}
	page := filepath.Join(t.TempDir(), "report.html")
	code, out, _ := probe(t.Context(), append([]string{"-c", "R-1/law,R-4/hang/GET", "-o", "json", "--html", page}, argv...)...)
	var report Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.ExitOK || report.Law == nil || report.Law.Law.Name != "full jitter" {
		t.Errorf("exit code %d, %v, %.300s", code, err, out)
	}
	checkSchema(t, out)
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "<svg") || !strings.Contains(string(text), "retry 3") {
		t.Errorf("%v, %.300s", err, text)
	}
	_, out, _ = probe(t.Context(), append([]string{"-c", "R-4/503/GET", "-o", "junit"}, argv...)...)
	var suite struct {
		Tests int `xml:"tests,attr"`
		Cases []struct {
			Name string `xml:"name,attr"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(out), &suite); err != nil || suite.Tests != 2 || len(suite.Cases) != 2 {
		t.Errorf("%v, %+v", err, suite)
	}
	out = policyOf(t, callerBase, callerAttempt, append([]string{"-o", "policy"}, argv...))
	// All that a policy file refuses is that there is no budget.
	_, err := policyfile.Parse("probed.yaml", []byte(out))
	faults, _ := errors.AsType[*policyfile.Error](err)
	if faults == nil || len(faults.Faults) != 1 || !strings.Contains(err.Error(), "budget none") {
		t.Errorf("%v\n%s", err, out)
	}
	_, client, _ := strings.Cut(out, "#   client: ")
	scenario := filepath.Join(t.TempDir(), "scenario.yaml")
	text := "name: probed\nduration: 20s\nfleets:\n  - {name: a, rate: 100, client: " + strings.TrimSpace(client) + "}\nservices:\n  - {name: b, capacity: 200, time: 20ms}\n"
	if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	if code := sim.Command().Run(t.Context(), &cli.Streams{Out: &log, Err: &log}, []string{"run", scenario}); code != cli.ExitOK {
		t.Errorf("sim: exit code %d: %s\n%s", code, log.String(), text)
	}
	if !strings.Contains(out, "max_retries: 3\n") || strings.Contains(out, "classify") {
		t.Errorf("%s", out)
	}
}

// policyOf is the policy that a command writes, which says about what was set. A machine that
// is busy for a moment makes waits long, and ends attempts late: it has three runs.
func policyOf(t *testing.T, base, attempt time.Duration, argv []string) (policy string) {
	t.Helper()
	near := func(key string, want time.Duration) bool {
		m := regexp.MustCompile(key + `: ([0-9.a-z]+)`).FindStringSubmatch(policy)
		if m == nil {
			return false
		}
		got, err := time.ParseDuration(m[1])
		return err == nil && (got-want).Abs() <= want/4
	}
	for range 3 {
		_, policy, _ = probe(t.Context(), argv...)
		if near("base", base) && near("per_attempt", attempt) {
			return policy
		}
	}
	t.Errorf("want a base of about %s, and %s for an attempt:\n%s", base, attempt, policy)
	return policy
}

// TestByHand: a client that the probe does not start is judged by what arrives.
func TestByHand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := newPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	list, err := choose(cases(), "R-4/502/GET,R-4/404/GET")
	if err != nil {
		t.Fatal(err)
	}
	var stands []stand
	for i := range list {
		if !list[i].byHand() {
			continue
		}
		s, err := open(&list[i], p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.server.Close()
		stands = append(stands, s)
		for range 2 { // sends everything twice
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/1", nil)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			time.Sleep(time.Millisecond)
		}
	}
	got := map[string]string{}
	for _, f := range reportOf(stands, list).Cases {
		got[f.ID] = f.Outcome
	}
	if got["R-4/502/GET"] != Holds || got["R-4/404/GET"] != Fails {
		t.Errorf("got %v", got)
	}
}
