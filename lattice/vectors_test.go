package lattice_test

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/faults"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/lattice"
	"github.com/forbear-go/forbear/reason"
)

type vectorCase struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	Profile   string `json:"profile"`
	Basis     string `json:"basis"`
	Ambiguity string `json:"ambiguity"`
	Note      string `json:"note"`
	Input     struct {
		Kind           string            `json:"kind"`
		Protocol       string            `json:"protocol"`
		Method         string            `json:"method"`
		Status         int               `json:"status"`
		Headers        map[string]string `json:"headers"`
		GRPCCode       string            `json:"grpc_code"`
		GRPCNumber     *uint32           `json:"grpc_number"`
		TransportError string            `json:"transport_error"`
		Message        string            `json:"message"`
		AttemptsMade   int               `json:"attempts_made"`
		RemainingMS    *int64            `json:"remaining_ms"`
		HasKey         bool              `json:"has_idempotency_key"`
		CallerDone     bool              `json:"caller_context_done"`
		PlainGoError   bool              `json:"plain_go_error"`
		TokenSource    json.RawMessage   `json:"token_source"`
		Refreshed      json.RawMessage   `json:"refreshed"`

		SDK                 string          `json:"sdk"`
		SDKSetting          json.RawMessage `json:"sdk_setting"`
		UtilityAttempts     int             `json:"utility_attempts"`
		UtilityAttemptsMade int             `json:"utility_attempts_made"`
		EveryAnswer         int             `json:"every_answer"`
		WireRequests        *int            `json:"wire_requests"`
	} `json:"input"`
	Expect struct {
		Retry         *bool    `json:"retry"`
		Action        string   `json:"action"`
		WaitMinMS     *int64   `json:"wait_min_ms"`
		WaitMaxMS     *int64   `json:"wait_max_ms"`
		Reason        *string  `json:"reason"`
		TotalRequests *int     `json:"total_requests"`
		Amplification *float64 `json:"amplification"`
		Layered       *bool    `json:"layered"`
		Warn          *bool    `json:"warn"`
		MaxRefreshes  *int     `json:"max_refreshes"`
	} `json:"expect"`
}

// transportErrors are the errors that the file names in its own words.
var transportErrors = map[string]string{
	"unexpected_eof": "unexpected_eof_in_body", "eof": "eof_before_response", "connect_error": "connection_refused",
	"remote_protocol_error": "eof_before_response", "timeout": "socket_timeout", "refused": "connection_refused",
	"reset": "connection_reset", "dns": "dns_failure",
}

// transportError builds the error that a Go client meets.
func transportError(name string) (error, error) {
	switch {
	case name == "x509_unknown_authority":
		return x509.UnknownAuthorityError{}, nil
	case strings.HasPrefix(name, "x509_"):
		name = "tls_certificate"
	}
	errs, err := faults.Build(cmp.Or(transportErrors[name], name))
	if err != nil {
		return nil, err
	}
	return errs[0], nil
}

// said reports whether a fact of a case, a boolean or a thing, is there.
func said(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`:
		return false
	}
	return true
}

// failure is what the adapter sees of the case's answer.
func (c *vectorCase) failure(t *testing.T, now time.Time) forbear.Failure {
	t.Helper()
	in := c.Input
	ctx := t.Context()
	if in.CallerDone {
		ctx = faults.Context("caller_cancelled")
	}
	req := (&http.Request{Method: cmp.Or(in.Method, http.MethodGet), Header: http.Header{}}).WithContext(ctx)
	switch {
	case in.CallerDone:
		return httpretry.Classify(req, nil, ctx.Err())
	case in.TransportError != "":
		err, unknown := transportError(in.TransportError)
		if unknown != nil {
			t.Fatal(unknown)
		}
		return httpretry.Classify(req, nil, err)
	case in.Protocol == "rest" && in.Status != 0:
		h := http.Header{}
		for k, v := range in.Headers {
			h.Set(k, expand(t, v, now))
		}
		return httpretry.ClassifyAt(req, &http.Response{StatusCode: in.Status, Header: h, Body: http.NoBody}, nil, now)
	case in.Protocol == "grpc" && in.PlainGoError:
		return httpretry.Classify(req, nil, errors.New(cmp.Or(in.Message, "no status")))
	case in.Protocol == "grpc" && in.GRPCCode != "":
		code, ok := grpccode.Parse(in.GRPCCode)
		if !ok || in.GRPCNumber != nil && *in.GRPCNumber != code {
			t.Fatalf("code %q is not understood", in.GRPCCode)
		}
		err := errors.New("a status")
		if strings.Contains(in.Message, "x509") || strings.Contains(in.Message, "certificate") {
			// What the transport credentials of grpcretry keep of the handshake.
			err = errors.Join(err, x509.UnknownAuthorityError{})
		}
		return lattice.ClassifyCode(code, err)
	}
	t.Fatalf("protocol %q is not understood", in.Protocol)
	return forbear.Failure{}
}

// expand fills in the times that a header names relative to now.
func expand(t *testing.T, v string, now time.Time) string {
	t.Helper()
	if offset, ok := strings.CutPrefix(v, "@now"); ok {
		d, err := time.ParseDuration(offset)
		if err != nil {
			t.Fatal(err)
		}
		return now.Add(d).UTC().Format(http.TimeFormat)
	}
	if offset, ok := strings.CutPrefix(v, "@epoch"); ok {
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatInt(now.Unix()+n, 10)
	}
	if strings.HasPrefix(v, "@") {
		t.Fatalf("header value %q is not understood", v)
	}
	return v
}

// reasons are the file's words for forbear's.
var reasons = map[forbear.Reason][]string{
	reason.Terminal:      {"terminal"},
	reason.Unknown:       {"terminal", "unknown", "serialization"},
	reason.Unauthorized:  {"terminal", "unauthorized"},
	reason.HintTooLong:   {"after_exceeds_budget"},
	reason.Certificate:   {"tls_certificate"},
	reason.NoKey:         {"not_idempotent", "no_idempotency_key"},
	reason.Exhausted:     {"max_attempts", "exhausted"},
	reason.Deadline:      {"deadline", "after_exceeds_budget"},
	reason.Canceled:      {"canceled", "cancelled", "caller_cancelled", "caller_canceled", "caller_context_done", "context_done", "caller_done", "deadline"},
	reason.DNSLimit:      {"dns_limit", "max_attempts"},
	reason.RefreshFailed: {"refresh_failed"},
}

func TestVectorsLattice(t *testing.T) {
	var file struct {
		About any          `json:"about"`
		Cases []vectorCase `json:"cases"`
	}
	vectors.Load(t, "lattice.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			switch c.Input.Kind {
			case "":
				c.decision(t)
			case "layering":
				c.layering(t)
			default:
				t.Fatalf("kind %q is not understood", c.Input.Kind)
			}
		})
	}
}

func (c *vectorCase) decision(t *testing.T) {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	p, err := forbear.Profile(c.Profile)
	if err != nil {
		t.Fatal(err)
	}
	s := forbear.State{
		Attempt: cmp.Or(c.Input.AttemptsMade, 1), Start: now,
		NeedsKey:    c.Input.Protocol == "rest" && httpretry.NeedsKey(c.Input.Method),
		Refreshable: said(c.Input.TokenSource),
	}
	if said(c.Input.Refreshed) {
		s.Refreshes = 1
	}
	if c.Input.HasKey {
		s.Key = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"
	}
	if ms := c.Input.RemainingMS; ms != nil {
		s.Deadline = now.Add(time.Duration(*ms) * time.Millisecond)
	}
	f := c.failure(t, now)
	d := forbear.Decide(&p, s, f, now, func() float64 { return 0.5 })
	want := c.Expect
	if want.Retry != nil && d.Retry != *want.Retry {
		t.Errorf("%s: retry %v (%v), want %v", c.Title, d.Retry, d.Reason, *want.Retry)
	}
	if err := action(want.Action, d); err != nil {
		t.Errorf("%s: %v", c.Title, err)
	}
	if want.Reason != nil && !d.Retry && !slices.Contains(reasons[d.Reason], *want.Reason) {
		t.Errorf("%s: reason %v, want %s", c.Title, d.Reason, *want.Reason)
	}
	if ms := want.WaitMinMS; ms != nil && d.Floor.Milliseconds() < *ms {
		t.Errorf("%s: floor %v, want at least %d ms", c.Title, d.Floor, *ms)
	}
	if ms := want.WaitMaxMS; ms != nil && d.Ceiling > time.Duration(*ms)*time.Millisecond {
		t.Errorf("%s: ceiling %v, want at most %d ms", c.Title, d.Ceiling, *ms)
	}
	if n := want.MaxRefreshes; n != nil {
		s.Refreshes = *n
		if again := forbear.Decide(&p, s, f, now, func() float64 { return 0.5 }); again.Reason == reason.Refresh {
			t.Errorf("%s: a refresh after %d, want none", c.Title, *n)
		}
	}
}

// action compares the file's word for what follows.
func action(want string, d forbear.Decision) error {
	got := "fail"
	switch {
	case d.Reason == reason.Refresh:
		got = "refresh"
	case d.Retry:
		got = "retry"
	case d.Reason == reason.Success:
		got = "success"
	}
	// The file may say how often and what follows: refresh_once, refresh_then_retry.
	if want == got || want == "" || got == "refresh" && strings.HasPrefix(want, "refresh") {
		return nil
	}
	return fmt.Errorf("action %s (%v), want %s", got, d.Reason, want)
}

func (c *vectorCase) layering(t *testing.T) {
	t.Helper()
	in, want := c.Input, c.Expect
	if in.WireRequests != nil {
		c.counted(t)
		return
	}
	if in.EveryAnswer != http.StatusServiceUnavailable {
		t.Fatalf("every_answer %d is not understood", in.EveryAnswer)
	}
	setting := strings.Trim(string(in.SDKSetting), `"`)
	if setting == "null" {
		setting = ""
	}
	requests, layered, err := lattice.Amplification(in.SDK, setting, in.UtilityAttempts)
	if err != nil {
		t.Fatal(err)
	}
	if want.TotalRequests != nil && requests != *want.TotalRequests {
		t.Errorf("%s: %d requests, want %d", c.Title, requests, *want.TotalRequests)
	}
	if want.Layered != nil && layered != *want.Layered {
		t.Errorf("%s: layered %v, want %v", c.Title, layered, *want.Layered)
	}
	if want.Warn != nil && layered != *want.Warn {
		t.Errorf("%s: warn %v, want %v", c.Title, layered, *want.Warn)
	}
	if want.Amplification != nil && float64(requests)/float64(in.UtilityAttempts) != *want.Amplification {
		t.Errorf("%s: amplification of %d requests, want %v", c.Title, requests, *want.Amplification)
	}
}

// counted lets a utility make the attempts, and the layer below the requests.
func (c *vectorCase) counted(t *testing.T) {
	t.Helper()
	in, want := c.Input, c.Expect
	if in.UtilityAttemptsMade < 1 {
		t.Fatal("utility_attempts_made is not understood")
	}
	attempts, requests, warned := playLayers(t, in.UtilityAttemptsMade, *in.WireRequests)
	got := float64(requests) / float64(attempts)
	if want.Amplification != nil && got != *want.Amplification {
		t.Errorf("%s: amplification %v, want %v", c.Title, got, *want.Amplification)
	}
	if want.Warn != nil && warned != *want.Warn {
		t.Errorf("%s: warned %v, want %v", c.Title, warned, *want.Warn)
	}
	if want.Layered != nil && warned != *want.Layered {
		t.Errorf("%s: layered %v, want %v", c.Title, warned, *want.Layered)
	}
}
