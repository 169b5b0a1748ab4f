package promretry_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The shipped rules pass Prometheus's own checks and unit tests.
func TestRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "forbear.rules.yml"}, {"test", "rules", "forbear_test.yml"}} {
		cmd := exec.Command(binary(t, "promtool"), args...)
		cmd.Dir = "../docs/alerts"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

var alertName = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)

// Each alert is listed, has a runbook with its three parts, and a unit test in
// which it fires.
func TestEachAlertHasItsPage(t *testing.T) {
	list, units := read(t, "../docs/alerts/README.md"), read(t, "../docs/alerts/forbear_test.yml")
	names := alertName.FindAllStringSubmatch(read(t, "../docs/alerts/forbear.rules.yml"), -1)
	if len(names) < 15 {
		t.Fatalf("found only %d alerts", len(names))
	}
	for _, m := range names {
		page := read(t, "../docs/runbooks/"+m[1]+".md")
		for _, part := range []string{"# " + m[1] + "\n", "## What it means", "## Where to look", "## What to do"} {
			if !strings.Contains(page, part) {
				t.Errorf("the runbook of %s lacks %q", m[1], part)
			}
		}
		if !strings.Contains(list, "["+m[1]+"]") {
			t.Errorf("%s is not in the list of alerts", m[1])
		}
		if !strings.Contains(units, "runbook_url: https://github.com/forbear-go/forbear/blob/main/docs/runbooks/"+m[1]+".md") {
			t.Errorf("no unit test lets %s fire", m[1])
		}
	}
}

// dashboard returns the queries of the dashboard by their panel.
func dashboard(t *testing.T) map[string][]string {
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct {
			List []struct{ Name, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../docs/dashboards/forbear.json")), &d); err != nil {
		t.Fatal(err)
	}
	queries := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries[p.Title] = append(queries[p.Title], target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		queries[a.Name] = append(queries[a.Name], a.Expr)
	}
	return queries
}

// checkDashboard runs each query of the dashboard, for all services and
// dependencies.
func checkDashboard(t *testing.T, p *server) {
	t.Helper()
	queries := dashboard(t)
	if len(queries) < 25 {
		t.Errorf("only %d panels", len(queries))
	}
	variables := strings.NewReplacer("$service", ".*", "$dependency", ".*", "$__rate_interval", "5s")
	for panel, exprs := range queries {
		for _, expr := range exprs {
			found := p.query(variables.Replace(expr))
			for n := 0; len(found) == 0 && n < 120; n++ { // a scrape that came too late leaves a gap
				time.Sleep(interval)
				found = p.query(variables.Replace(expr))
			}
			if len(found) == 0 {
				t.Errorf("%s: no data for %s", panel, expr)
			}
		}
	}
}
