package forrst_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forrst"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

// TestVectorsForrstOnTheWire plays the cases about a first attempt between the
// transport and a server that gives the case's answer once: what the retry
// carries, and when it comes.
func TestVectorsForrstOnTheWire(t *testing.T) {
	var file struct {
		About any          `json:"about"`
		Cases []vectorCase `json:"cases"`
	}
	vectors.Load(t, "forrst.json", &file)
	played := 0
	for _, c := range file.Cases {
		if c.AttemptsMade > 1 {
			continue // the decision alone: TestVectorsForrst
		}
		for _, phase := range c.Phase {
			played++
			t.Run(fmt.Sprintf("%s/phase%d", c.ID, phase), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.play(t, forrst.Phase(phase)) })
			})
		}
	}
	if played == 0 {
		t.Error("no cases")
	}
}

// request is the call that the case's answer is for.
func (c *vectorCase) request(t *testing.T) string {
	t.Helper()
	var answer struct {
		ID any `json:"id"`
	}
	_ = json.Unmarshal(c.Message, &answer) // some cases are no JSON
	id, _ := answer.ID.(string)
	var extensions []string
	if c.Request.HasKey {
		extensions = append(extensions, `{"urn":"urn:forrst:ext:idempotency","options":{"key":"`+cmp.Or(c.Request.Key, "k")+`"}}`)
	}
	if ms := c.Request.DeadlineMS; ms > 0 {
		extensions = append(extensions, fmt.Sprintf(`{"urn":"urn:forrst:ext:deadline","options":{"value":%d,"unit":"millisecond"}}`, ms))
	}
	return fmt.Sprintf(`{"protocol":{"name":"forrst","version":"0.1.0"},"id":%q,"call":{"function":"f"},"extensions":[%s]}`,
		cmp.Or(c.Request.ID, id, "req_123"), strings.Join(extensions, ","))
}

// ServeHTTP's part of a case: its answer, under its status and headers.
func (c *vectorCase) answer(w http.ResponseWriter, _ string) {
	status := http.StatusOK
	if c.HTTP != nil {
		status = c.HTTP.Status
		for k, v := range c.HTTP.Headers {
			w.Header().Set(k, v)
		}
	}
	w.WriteHeader(status)
	body := string(c.Message)
	if c.RawBody != nil {
		body = *c.RawBody
	}
	_, _ = io.WriteString(w, body)
}

func (c *vectorCase) play(t *testing.T, phase forrst.Phase) {
	s := &server{script: []func(http.ResponseWriter, string){c.answer}}
	p := forbear.Policy{Kind: kinds[c.Context.Kind], MaxRetries: c.Context.PolicyMaxAttempts}
	p.Backoff.Cap = time.Duration(c.Context.CapMS) * time.Millisecond
	r, err := forbear.New("billing", p, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if ms := c.Context.RemainingMS; ms != nil {
		limited, cancel := context.WithTimeout(ctx, time.Duration(*ms)*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://billing.test/", strings.NewReader(c.request(t)))
	if err != nil {
		t.Fatal(err)
	}
	o := forrst.Options{Phase: phase, Logger: textLogger(io.Discard), Idempotent: func(string) bool { return c.Request.Idempotent }}
	resp, err := forrst.NewTransport(s, r, o).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	want := c.Expect
	if got := len(s.arrivals) - 1; (got == 1) != want.Retry || got > 1 {
		t.Fatalf("%s: %d retries, want retry %v", c.Title, got, want.Retry)
	}
	if !want.Retry {
		return
	}
	first, second := s.arrivals[0], s.arrivals[1]
	if fresh := first.id != second.id; want.NewRequestID != nil && fresh != *want.NewRequestID {
		t.Errorf("%s: ids %q and %q", c.Title, first.id, second.id)
	}
	if same := first.key != "" && first.key == second.key; want.SameKey != nil && same != *want.SameKey {
		t.Errorf("%s: keys %q and %q", c.Title, first.key, second.key)
	}
	if longer := second.deadline > first.deadline; want.LongerDeadline != nil && first.deadline > 0 && longer != *want.LongerDeadline {
		t.Errorf("%s: deadlines %v and %v", c.Title, first.deadline, second.deadline)
	}
	gap := second.at.Sub(first.at).Milliseconds()
	if want.WaitMinMS != nil && gap < *want.WaitMinMS || want.WaitMaxMS != nil && gap > *want.WaitMaxMS {
		t.Errorf("%s: waited %d ms", c.Title, gap)
	}
}
