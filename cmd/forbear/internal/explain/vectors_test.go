package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

// reply is an answer or a refusal.
type reply struct {
	Verdict
	Error string `json:"error"`
}

// ask runs explain over situations and returns its replies by id.
func ask(t *testing.T, situations []map[string]any) map[string]reply {
	t.Helper()
	var in strings.Builder
	enc := json.NewEncoder(&in)
	for _, s := range situations {
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	got := clitest.Run(t, Command(), in.String(), "--json")
	replies := map[string]reply{}
	dec := json.NewDecoder(strings.NewReader(got.Out))
	for i := range situations {
		var r reply
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("answer %d: %v", i+1, err)
		}
		if r.ID != situations[i]["id"] {
			t.Fatalf("answer %d is about %q, want %q", i+1, r.ID, situations[i]["id"])
		}
		replies[r.ID] = r
	}
	if dec.More() {
		t.Fatal("more answers than situations")
	}
	return replies
}

// set adds a fact that is known to the situation.
func set[T comparable](s map[string]any, name string, value T) {
	var zero T
	if value != zero {
		s[name] = value
	}
}

// stated are those that the vectors state beside the failure, in the case or in
// its input.
type stated struct {
	Method  string  `json:"method"`
	Profile string  `json:"profile"`
	Key     *string `json:"idempotency_key"`
	Made    int     `json:"attempts_made"`
	DNS     int     `json:"dns_failures"`
	Body    string  `json:"body"`
}

func (f stated) or(o stated) stated {
	return stated{
		cmp.Or(f.Method, o.Method), cmp.Or(f.Profile, o.Profile), cmp.Or(f.Key, o.Key),
		cmp.Or(f.Made, o.Made), cmp.Or(f.DNS, o.DNS), cmp.Or(f.Body, o.Body),
	}
}

func (f stated) situation(t *testing.T, id, protocol string) map[string]any {
	t.Helper()
	s := map[string]any{"id": id, "protocol": protocol}
	set(s, "method", f.Method)
	set(s, "profile", f.Profile)
	set(s, "attempts_made", f.Made)
	set(s, "dns_failures", f.DNS)
	if f.Key != nil {
		s["idempotency_key"] = *f.Key
	}
	switch f.Body {
	case "", "none":
	case "stream without GetBody":
		s["replayable"] = false
	default:
		t.Fatalf("%s: body %q is not understood", id, f.Body)
	}
	return s
}

// verdict turns a reply into the words of the classify vectors.
func verdict(t *testing.T, r reply) string {
	t.Helper()
	switch {
	case r.Error != "":
		return "error: " + r.Error
	case r.Decision == "stop":
		return "no"
	default:
		return r.Decision
	}
}

// judge compares verdicts with what the cases expect or also allow.
func judge(t *testing.T, id string, r reply, expect string, alsoOK []string) {
	t.Helper()
	for _, want := range append([]string{expect}, alsoOK...) {
		if !slices.Contains([]string{"retry", "no", "success", "reject"}, want) {
			t.Fatalf("%s: expectation %q is not understood", id, want)
		}
	}
	if got := verdict(t, r); got != expect && !slices.Contains(alsoOK, got) {
		t.Errorf("%s: got %s (%s), want %s", id, got, r.Reason, expect)
	}
}

func TestVectorsClassifyHTTP(t *testing.T) {
	var file struct {
		About string `json:"about"`
		Cases []struct {
			ID    string `json:"id"`
			Input struct {
				Status       int     `json:"status"`
				TokenRefresh bool    `json:"token_refresh"`
				ShouldRetry  *string `json:"x_should_retry"`
				stated
			} `json:"input"`
			stated
			Expect string   `json:"expect"`
			AlsoOK []string `json:"also_ok"`
			Basis  string   `json:"basis"`
			Note   string   `json:"note"`
			Go     string   `json:"go"`
		} `json:"cases"`
	}
	vectors.Load(t, "classify-http.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	var situations []map[string]any
	for _, c := range file.Cases {
		s := c.stated.or(c.Input.stated).situation(t, c.ID, "http")
		s["status"] = c.Input.Status
		set(s, "token_refresh", c.Input.TokenRefresh)
		if c.Input.ShouldRetry != nil {
			s["headers"] = [][2]string{{"X-Should-Retry", *c.Input.ShouldRetry}}
		}
		situations = append(situations, s)
	}
	replies := ask(t, situations)
	for _, c := range file.Cases {
		judge(t, c.ID, replies[c.ID], c.Expect, c.AlsoOK)
	}
}

func TestVectorsClassifyNet(t *testing.T) {
	var file struct {
		About string `json:"about"`
		Cases []struct {
			ID    string `json:"id"`
			Input struct {
				Kind string `json:"kind"`
				Go   string `json:"go"`
				stated
			} `json:"input"`
			stated
			Expect string   `json:"expect"`
			AlsoOK []string `json:"also_ok"`
			Basis  string   `json:"basis"`
			Note   string   `json:"note"`
			Go     string   `json:"go"`
		} `json:"cases"`
	}
	vectors.Load(t, "classify-net.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	var situations []map[string]any
	for _, c := range file.Cases {
		s := c.stated.or(c.Input.stated).situation(t, c.ID, "net")
		s["error"] = c.Input.Kind
		situations = append(situations, s)
	}
	replies := ask(t, situations)
	for _, c := range file.Cases {
		judge(t, c.ID, replies[c.ID], c.Expect, c.AlsoOK)
	}
}

// wait is what a retry-after case expects.
type wait struct {
	WaitMS   *float64 `json:"wait_ms"`
	Invalid  bool     `json:"invalid"`
	FailFast bool     `json:"fail_fast"`
	Retry    *bool    `json:"retry"`
}

// matches reports whether r is what w expects. Without a server's wait the
// longest wait is the first backoff of 1 s.
func (w wait) matches(r reply, backoffMS, toleranceMS float64) error {
	if r.Error != "" {
		return fmt.Errorf("refused: %s", r.Error)
	}
	const firstBackoff = 1000
	switch {
	case w.Retry != nil && !*w.Retry:
		if r.Decision == "retry" {
			return fmt.Errorf("retried after %d-%d ms, want no retry", r.WaitMin, r.WaitMax)
		}
	case w.FailFast:
		if r.Decision != "stop" || r.Rule != "R-5" && r.Rule != "R-3" {
			return fmt.Errorf("%s (%s), want to fail at once", r.Decision, r.Reason)
		}
	case w.Invalid:
		if r.Decision != "retry" || r.WaitMin != 0 || r.WaitMax > firstBackoff {
			return fmt.Errorf("%s after %d-%d ms, want the backoff alone", r.Decision, r.WaitMin, r.WaitMax)
		}
	case w.WaitMS != nil:
		// Of a backoff that was drawn only the server's floor is explain's to
		// tell: where the backoff is the longer one, the floor is below it.
		floor := float64(r.WaitMin)
		if r.Decision != "retry" || floor > *w.WaitMS+toleranceMS || floor < *w.WaitMS && backoffMS < *w.WaitMS {
			return fmt.Errorf("%s after at least %d ms, want %v", r.Decision, r.WaitMin, *w.WaitMS)
		}
	default:
		return fmt.Errorf("expectation %+v is not understood", w)
	}
	return nil
}

func TestVectorsRetryAfter(t *testing.T) {
	var file struct {
		About string `json:"about"`
		Cases []struct {
			ID        string      `json:"id"`
			Status    int         `json:"status"`
			Method    string      `json:"method"`
			Profile   string      `json:"profile"`
			Key       string      `json:"idempotency_key"`
			Now       string      `json:"now"`
			Headers   [][2]string `json:"headers"`
			Expect    wait        `json:"expect"`
			AlsoOK    []wait      `json:"also_ok"`
			Backoff   float64     `json:"backoff_ms"`
			Remaining *float64    `json:"remaining_ms"`
			Tolerance float64     `json:"tolerance_ms"`
			Basis     string      `json:"basis"`
			Note      string      `json:"note"`
		} `json:"cases"`
	}
	vectors.Load(t, "retry-after.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	var situations []map[string]any
	for _, c := range file.Cases {
		s := map[string]any{"id": c.ID, "protocol": "http", "status": c.Status, "headers": c.Headers, "now": c.Now}
		set(s, "method", c.Method)
		set(s, "profile", c.Profile)
		set(s, "idempotency_key", c.Key)
		if c.Remaining != nil {
			s["remaining_ms"] = int64(*c.Remaining)
		}
		if c.Remaining == nil || *c.Remaining > 30_000 {
			// R-3 ends synchronous calls at 30 s. The case asks what the header
			// says, in a call of any length or of a longer one.
			s["kind"] = "event"
		}
		situations = append(situations, s)
	}
	replies := ask(t, situations)
	for _, c := range file.Cases {
		r := replies[c.ID]
		err := c.Expect.matches(r, c.Backoff, c.Tolerance)
		for _, also := range c.AlsoOK {
			if err != nil && also.matches(r, c.Backoff, c.Tolerance) == nil {
				err = nil
			}
		}
		if err != nil {
			t.Errorf("%s: %v (%v, %s)", c.ID, err, c.Headers, c.Basis)
		}
	}
}
