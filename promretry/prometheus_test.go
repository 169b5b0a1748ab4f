package promretry_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// binary finds a program of Debian's package prometheus.
func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: sudo apt-get install prometheus", name)
	}
	t.Skipf("NOT RUN, %s is missing: sudo apt-get install prometheus", name)
	return ""
}

const (
	// scale turns the minutes of the rules into the seconds of a test.
	scale    = 60
	interval = 500 * time.Millisecond // of scrapes and of evaluation
)

var durations = regexp.MustCompile(`(\[|for: |offset )(\d+)([hm])\b`)

// scaled divides the ranges, offsets and for-clauses of rules by scale, or by less.
func scaled(text string, slower time.Duration) string {
	return durations.ReplaceAllStringFunc(text, func(s string) string {
		m := durations.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[2])
		unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour}[m[3]]
		return fmt.Sprintf("%s%dms", m[1], (time.Duration(n) * unit * slower / scale).Milliseconds())
	})
}

// prometheus is a real one, on a free port and in a temporary folder.
type server struct {
	t    *testing.T
	base string
}

// All its times are so many times longer than they are at the least.
func startPrometheus(t *testing.T, target string, slower time.Duration) *server {
	t.Helper()
	program, dir := binary(t, "prometheus"), t.TempDir()
	rules, err := os.ReadFile("../docs/alerts/forbear.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "rules.yml"), scaled(string(rules), slower))
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: %v, scrape_timeout: %v, evaluation_interval: %v}
rule_files: [rules.yml]
scrape_configs: [{job_name: checkout, static_configs: [{targets: ['%s']}]}]
`, interval*slower, interval*slower, interval*slower, target))
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(porttest.Free(t)))
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus said: %s", log.String())
		}
	})
	s := &server{t, "http://" + address}
	for range 1200 {
		if resp, err := http.Get(s.base + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("prometheus did not become ready")
	return nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sample is a point of a series, and its value as text.
type sample struct {
	at    float64 // seconds since 1970
	value string
}

func (s *sample) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&s.at, &s.value})
}

type result struct {
	Metric map[string]string `json:"metric"`
	Value  sample            `json:"value"`
	Values []sample          `json:"values"`
}

// api asks Prometheus and returns what it answers.
func (s *server) api(path string, args url.Values) ([]result, error) {
	resp, err := http.PostForm(s.base+"/api/v1/"+path, args)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []result }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	return answer.Data.Result, nil
}

func (s *server) query(q string) []result {
	s.t.Helper()
	r, err := s.api("query", url.Values{"query": {q}})
	if err != nil {
		s.t.Fatalf("%s: %v", q, err)
	}
	return r
}

// firing returns the alerts that have fired.
func (s *server) firing() map[string]bool {
	names := map[string]bool{}
	for _, r := range s.query(`max_over_time(ALERTS{alertstate="firing"}[10m])`) {
		names[r.Metric["alertname"]] = true
	}
	return names
}

// wait waits for so many alerts to have fired, for a time, and returns them.
func (s *server) wait(n int) (fired map[string]bool) {
	for since := time.Now(); time.Since(since) < 3*time.Minute && len(fired) < n; time.Sleep(interval) {
		fired = s.firing()
	}
	return fired
}

// tooSoon returns the alerts that fired before their "for" was over, by the
// evaluations that Prometheus has recorded: how busy the machine is makes them
// late, but changes nothing between them.
func (s *server) tooSoon(alerts []rule) (names []string) {
	s.t.Helper()
	key := func(r result) string {
		labels := maps.Clone(r.Metric)
		delete(labels, "__name__")
		delete(labels, "alertstate")
		return fmt.Sprint(labels)
	}
	states := map[string][]sample{} // since when it has been active, at each evaluation
	for _, r := range s.query(`ALERTS_FOR_STATE[10m]`) {
		states[key(r)] = r.Values
	}
	waits := map[string]float64{}
	for _, a := range alerts {
		waits[a.Name] = a.Duration
	}
	for _, r := range s.query(`ALERTS{alertstate="firing"}[10m]`) {
		fired, list := r.Values[0].at, states[key(r)]
		now := slices.IndexFunc(list, func(v sample) bool { return v.at == fired })
		if now < 0 {
			s.t.Errorf("no state of %v when it fired", r.Metric)
			continue
		}
		first := slices.IndexFunc(list, func(v sample) bool { return v.value == list[now].value })
		if name := r.Metric["alertname"]; fired-list[first].at < waits[name]-0.001 {
			names = append(names, name)
		}
	}
	return names
}

// rule is an alerting rule as Prometheus has loaded it.
type rule struct {
	Name, Query, Type string
	Duration          float64
}

func (s *server) alertRules() (alerts []rule) {
	s.t.Helper()
	resp, err := http.Get(s.base + "/api/v1/rules?type=alert")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	for _, g := range answer.Data.Groups {
		alerts = append(alerts, g.Rules...)
	}
	return alerts
}

// description returns what an alert about a dependency says now.
func (s *server) description(alert, dependency string) string {
	s.t.Helper()
	resp, err := http.Get(s.base + "/api/v1/alerts")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Alerts []struct{ Labels, Annotations map[string]string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	for _, a := range answer.Data.Alerts {
		if a.Labels["alertname"] == alert && a.Labels["dependency"] == dependency {
			return a.Annotations["description"]
		}
	}
	return ""
}

// A quiet run raises no alert. Then everything goes wrong at once, and each alert
// fires, after its "for". The rules are the shipped ones with seconds for minutes;
// TestRules holds them to their times, which are virtual there. At last each query of
// the dashboard has a response.
func TestAlertsInAnOutage(t *testing.T) {
	ringtest.NotQuick(t, "it starts Prometheus")
	s := newStage()
	address := s.serve(t)
	s.start(t)
	p := startPrometheus(t, address, 1)
	quiet := time.Now() // real sockets, real processes
	for n := 0; n == 0 && time.Since(quiet) < time.Minute || time.Since(quiet) < 13*time.Second; {
		time.Sleep(interval)
		n = len(p.query(`forbear:retries:rate5m{dependency="search"} > 0`))
	}
	if found := p.query(`max_over_time(ALERTS[5m])`); len(found) > 0 {
		t.Errorf("alerts in the quiet run: %v", found)
	}
	if found := p.query(`forbear:retries:rate5m{dependency="search"} > 0`); len(found) == 0 {
		t.Error("the quiet run has no retries, so it shows nothing")
	}

	s.down.Store(true)
	alerts := p.alertRules()
	if len(alerts) < 15 {
		t.Fatalf("%d alerts are loaded", len(alerts))
	}
	fired := p.wait(len(alerts))
	if len(fired) < len(alerts) {
		// On a machine with other work scrapes take longer than they may, and each gap
		// begins the "for" of an alert anew. At another pace they are in time.
		t.Logf("these have fired: %v", slices.Sorted(maps.Keys(fired)))
		p = startPrometheus(t, address, 4)
		alerts = p.alertRules()
		fired = p.wait(len(alerts))
	}
	for _, a := range alerts {
		if !fired[a.Name] {
			t.Errorf("%s did not fire: %s", a.Name, a.Query)
		}
	}
	if names := p.tooSoon(alerts); len(names) > 0 {
		t.Errorf("%v fired before their for was over", names)
	}
	for _, r := range p.query(`max_over_time(ALERTS{alertname="ForbearBreakerFlapping"}[5m])`) {
		if d := r.Metric["dependency"]; d != "stock" {
			t.Errorf("%s is one outage, and no flapping", d)
		}
	}
	const why = "A probe failed, and it opened again. "
	got := p.description("ForbearBreakerOpened", "payments")
	for n := 0; !strings.Contains(got, why) && n < 120; n++ { // a scrape that came too late leaves a gap
		time.Sleep(interval)
		got = p.description("ForbearBreakerOpened", "payments")
	}
	if !strings.Contains(got, why) {
		t.Errorf("the alert on the breaker of payments says %q, and not why it opened", got)
	}
	checkDashboard(t, p)
}
