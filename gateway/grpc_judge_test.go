package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/reason"
)

// vectorCase is a case that the interceptors are held to as well.
type vectorCase struct {
	ID    string `json:"id"`
	Input struct {
		Code     uint32   `json:"code"`
		Name     string   `json:"name"`
		Pushback []string `json:"pushback"`

		AttemptsMade         int    `json:"attempts_made"`
		MaxAttempts          int    `json:"max_attempts"`
		RemainingMS          *int64 `json:"remaining_ms"`
		CallerDeadlinePassed bool   `json:"caller_deadline_passed"`
		HeadersReceived      bool   `json:"headers_received"`
	} `json:"input"`
	Method  string   `json:"method"`
	Profile string   `json:"profile"`
	Expect  string   `json:"expect"`
	AlsoOK  []string `json:"also_ok"`
	Basis   string   `json:"basis"`
	Note    string   `json:"note"`
	WaitMS  *int64   `json:"wait_ms"`
}

// response returns what the server of the case sends.
func (c *vectorCase) response() *http.Response {
	h := http.Header{"Content-Type": {"application/grpc"}}
	if !c.Input.HeadersReceived { // or the status comes with the trailers
		h[grpcwire.HeaderStatus] = []string{strconv.FormatUint(uint64(c.Input.Code), 10)}
		if c.Input.Pushback != nil {
			h[grpcwire.HeaderPushback] = c.Input.Pushback
		}
	}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 2, Header: h}
}

// judge decides about the case with the gateway's own classifier.
func (c *vectorCase) judge(t *testing.T, now time.Time) forbear.Decision {
	t.Helper()
	p, err := forbear.Profile(c.Profile)
	if err != nil {
		t.Fatal(err)
	}
	if code, ok := grpccode.Parse(c.Input.Name); c.Method != "unary" || !ok || code != c.Input.Code {
		t.Fatalf("method %q or code %d, %q is not understood", c.Method, c.Input.Code, c.Input.Name)
	}
	p.Kind = forbear.GRPC
	switch n := c.Input.MaxAttempts; { // gRFC A6 counts attempts
	case n == 1:
		p.Disabled = true
	case n > 1:
		p.MaxRetries = n - 1
	}
	s := forbear.State{Attempt: cmp.Or(c.Input.AttemptsMade, 1), Start: now}
	if ms := c.Input.RemainingMS; ms != nil {
		s.Deadline = now.Add(time.Duration(*ms) * time.Millisecond)
	}
	if c.Input.CallerDeadlinePassed {
		s.Deadline = now.Add(-time.Second)
	}
	return forbear.Decide(&p, s, new(rpc).Classify(c.response()), now, func() float64 { return 0.5 })
}

// TestVectorsRPC: the gateway judges as the interceptors do.
func TestVectorsRPC(t *testing.T) {
	var file struct {
		About any          `json:"about"`
		Cases []vectorCase `json:"cases"`
	}
	vectors.Load(t, "classify-grpc.json", &file)
	if len(file.Cases) < 10 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			d := c.judge(t, time.Unix(1_000_000, 0))
			got := "no"
			switch {
			case d.Retry:
				got = "retry"
			case d.Reason == reason.Success && !c.Input.HeadersReceived:
				got = "success"
			}
			if got != c.Expect && !slices.Contains(c.AlsoOK, got) {
				t.Errorf("%s: got %s (%v), want %s (%s)", c.Input.Name, got, d.Reason, c.Expect, c.Basis)
			}
			if ms := c.WaitMS; ms != nil && d.Retry {
				want := time.Duration(*ms) * time.Millisecond
				if d.Floor != want || d.Ceiling > want+want/10 {
					t.Errorf("wait %v to %v, want %v", d.Floor, d.Ceiling, want)
				}
			}
		})
	}
}

// TestCodes: every problem of the gateway has a code of its own choice, and those that
// must not be tried again by the caller none that it would try again.
func TestCodes(t *testing.T) {
	for _, tc := range []struct {
		kind, reason, errorType string
		status                  int
		want                    uint32
	}{
		{"no-route", "", "", 404, 12},
		{"upstream", "", "connection_refused", 502, 14},
		{"upstream", "terminal", "http2_stream_reset", 502, 13},
		{"upstream", "terminal", "http2_protocol", 502, 13},
		{"upstream", "exhausted", "http2_enhance_your_calm", 502, 8},
		{"upstream", "budget_exhausted", "connection_refused", 502, 14},
		{"suppressed", "breaker_open", "breaker_open", 503, 14},
		{"timeout", "budget_exhausted", "timeout", 504, 4},
		{"deadline", "deadline", "caller_deadline", 504, 4},
		{"paced", "paced", "paced", 429, 8},
		{"suppressed", "bulkhead_full", "bulkhead_full", 503, 8},
		{"timeout", "exhausted", "timeout", 504, 4},
		{"certificate", "tls_certificate", "tls_certificate", 502, 14},
		{"a-new-one", "", "", 429, 8},
		{"a-new-one", "", "", 503, 14},
		{"a-new-one", "", "", 418, 2},
	} {
		p := newProblem(tc.status, tc.kind, "", "")
		p.Reason, p.ErrorType = tc.reason, tc.errorType
		if got := codeOf(&p); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// TestTranslate: what other parts of the gateway say of waiting is said in gRPC's words.
func TestTranslate(t *testing.T) {
	for _, tc := range []struct {
		h    http.Header
		want string
	}{
		{http.Header{}, ""},
		{http.Header{"Retry-After": {"2"}}, "2000"},
		{http.Header{"Retry-After": {"2"}, "Grpc-Retry-Pushback-Ms": {"1500"}}, "1500"},
		{http.Header{"Retry-After": {"2"}, "X-Forbear-No-Retry": {"deadline"}}, "-1"},
		{http.Header{"Retry-After": {"soon"}}, ""},
	} {
		translate(tc.h)
		if got := tc.h.Get("Grpc-Retry-Pushback-Ms"); got != tc.want || tc.h.Get("Retry-After") != "" {
			t.Errorf("got %v, want %q", tc.h, tc.want)
		}
	}
}

// TestResetAtTheEnd: a server resets a stream whose time has run out by its clock. That
// is the caller's deadline, and no failure of the server's.
func TestResetAtTheEnd(t *testing.T) {
	reset := forbear.Failure{Class: forbear.ClassTransient, Type: "http2_stream_reset"}
	for _, tc := range []struct {
		name string
		c    rpc
		f    forbear.Failure
		want forbear.Class
	}{
		{"no deadline", rpc{}, reset, forbear.ClassTerminal},
		{"long before", rpc{due: time.Now().Add(time.Hour), slack: time.Second}, reset, forbear.ClassTerminal},
		{"just before", rpc{due: time.Now().Add(time.Second), slack: time.Hour}, reset, forbear.ClassCanceled},
		{"after", rpc{due: time.Now().Add(-time.Second)}, reset, forbear.ClassCanceled},
		{"refused, just before", rpc{due: time.Now()}, forbear.Failure{Class: forbear.ClassTransient, Type: "http2_refused_stream"}, forbear.ClassTransient},
	} {
		if got := tc.c.Failed(tc.f); got.Class != tc.want {
			t.Errorf("%s: %+v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestCodeSent: the access log names the code, wherever the response had it.
func TestCodeSent(t *testing.T) {
	for _, tc := range []struct {
		h    http.Header
		want string
	}{
		{http.Header{"Grpc-Status": {"14"}}, "UNAVAILABLE"},
		{http.Header{"Trailer:Grpc-Status": {"0"}}, "OK"},
		{http.Header{"Grpc-Status": {"99"}}, "invalid"},
		{http.Header{"Grpc-Status": {"x"}}, "UNKNOWN"},
		{http.Header{}, ""},
	} {
		if got := codeSent(tc.h); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.h, got, tc.want)
		}
	}
}
