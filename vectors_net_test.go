package forbear_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/faults"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

// netFacts are the facts of a classify-net case. They may stand in the case or
// in its input.
type netFacts struct {
	Method         string `json:"method"`
	Profile        string `json:"profile"`
	IdempotencyKey string `json:"idempotency_key"`
	AttemptsMade   int    `json:"attempts_made"`
	DNSFailures    int    `json:"dns_failures"`
	Body           string `json:"body"`
}

func (f netFacts) or(o netFacts) netFacts {
	return netFacts{
		cmp.Or(f.Method, o.Method), cmp.Or(f.Profile, o.Profile), cmp.Or(f.IdempotencyKey, o.IdempotencyKey),
		cmp.Or(f.AttemptsMade, o.AttemptsMade), cmp.Or(f.DNSFailures, o.DNSFailures), cmp.Or(f.Body, o.Body),
	}
}

type netCase struct {
	ID    string `json:"id"`
	Input struct {
		Kind string `json:"kind"`
		Go   string `json:"go"`
		netFacts
	} `json:"input"`
	netFacts
	Expect string   `json:"expect"`
	AlsoOK []string `json:"also_ok"`
	Basis  string   `json:"basis"`
	Note   string   `json:"note"`
	Go     string   `json:"go"`
}

type netFile struct {
	About string    `json:"about"`
	Cases []netCase `json:"cases"`
}

// state turns the facts into a State; a fact that it does not understand is an
// error.
func (f netFacts) state() (s forbear.State, err error) {
	s = forbear.State{Attempt: f.AttemptsMade, DNSFailures: f.DNSFailures, Key: f.IdempotencyKey}
	switch f.Method {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE":
	case "POST", "PATCH":
		s.NeedsKey = true
	default:
		return s, fmt.Errorf("method %q is not understood", f.Method)
	}
	switch f.Body {
	case "", "none":
	case "stream without GetBody":
		s.Unreplayable = true
	default:
		return s, fmt.Errorf("body %q is not understood", f.Body)
	}
	return s, nil
}

// judge decides about every error of the case's kind: "retry" or "no", or an
// error when the case is not understood or when its errors are not of one mind.
func (c *netCase) judge() (string, error) {
	facts := c.netFacts.or(c.Input.netFacts)
	state, err := facts.state()
	if err != nil {
		return "", err
	}
	policy, err := forbear.Profile(facts.Profile)
	if err != nil {
		return "", err
	}
	errs, err := faults.Build(c.Input.Kind)
	if err != nil {
		return "", err
	}
	answer := ""
	for _, e := range errs {
		f := forbear.Classify(faults.Context(c.Input.Kind), e, edge.ClassifyNet)
		got := "no"
		if forbear.Decide(&policy, state, f, time.Unix(1000, 0), func() float64 { return 0.5 }).Retry {
			got = "retry"
		}
		if answer != "" && got != answer {
			return "", fmt.Errorf("%T: %q, but the error before: %q", e, got, answer)
		}
		answer = got
	}
	return answer, nil
}

func TestVectorsClassifyNet(t *testing.T) {
	var file netFile
	vectors.Load(t, "classify-net.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			for _, want := range append([]string{c.Expect}, c.AlsoOK...) {
				if want != "retry" && want != "no" {
					t.Fatalf("expectation %q is not understood", want)
				}
			}
			got, err := c.judge()
			if err != nil {
				t.Fatal(err)
			}
			if got != c.Expect && !slices.Contains(c.AlsoOK, got) {
				t.Errorf("%s %s: got %q, want %q (%s)", c.Method, c.Input.Kind, got, c.Expect, c.Basis)
			}
		})
	}
}

// What each fault is to for a GET, the whole vocabulary.
func TestFaultsClasses(t *testing.T) {
	want := map[string]forbear.Class{
		"connection_refused":                   forbear.ClassTransient,
		"connection_reset":                     forbear.ClassTransient,
		"broken_pipe":                          forbear.ClassTransient,
		"network_unreachable":                  forbear.ClassTransient,
		"host_unreachable":                     forbear.ClassTransient,
		"eof_before_response":                  forbear.ClassTransient,
		"unexpected_eof_in_body":               forbear.ClassTransient,
		"socket_timeout":                       forbear.ClassTimeout,
		"dial_timeout":                         forbear.ClassTimeout,
		"per_attempt_deadline":                 forbear.ClassTimeout,
		"caller_deadline":                      forbear.ClassCanceled,
		"caller_cancelled":                     forbear.ClassCanceled,
		"dns_failure":                          forbear.ClassDNS,
		"dns_not_found":                        forbear.ClassDNS,
		"tls_handshake_timeout":                forbear.ClassTimeout,
		"tls_certificate":                      forbear.ClassCertificate,
		"tls_alert_bad_certificate":            forbear.ClassCertificate,
		"tls_alert_handshake_failure":          forbear.ClassTerminal,
		"tls_record_header":                    forbear.ClassTerminal,
		"http2_refused_stream":                 forbear.ClassTransient,
		"http2_goaway_stream_above_last":       forbear.ClassTransient,
		"http2_goaway_stream_at_or_below_last": forbear.ClassTransient,
		"http2_connection_lost":                forbear.ClassTransient,
		"connection_closed_while_idle":         forbear.ClassTransient,
		"malformed_response":                   forbear.ClassTransient,
		"unix_socket_missing":                  forbear.ClassTransient,
		"http2_stream_reset":                   forbear.ClassTransient,
		"http2_enhance_your_calm":              forbear.ClassThrottled,
		"http2_protocol":                       forbear.ClassTerminal,
		"http2_not_resent":                     forbear.ClassTransient,
		"proxy_403":                            forbear.ClassTerminal,
		"proxy_407":                            forbear.ClassTerminal,
		"proxy_502":                            forbear.ClassTransient,
		"proxy_503":                            forbear.ClassTransient,
		"proxy_504":                            forbear.ClassTimeout,
		"http1_wanted":                         forbear.ClassTerminal,
		"http2_wanted":                         forbear.ClassTerminal,
		"tls_wanted":                           forbear.ClassTerminal,
		"not_http":                             forbear.ClassTerminal,
		"upgrade_over_http2":                   forbear.ClassTerminal,
		"too_many_redirects":                   forbear.ClassUnknown,
		"other_error":                          forbear.ClassUnknown,
		"serialization_error":                  forbear.ClassTerminal,
		"invalid_configuration":                forbear.ClassUnknown,
		"token_permanently_revoked":            forbear.ClassUnknown,
	}
	for _, kind := range faults.Kinds() {
		errs, err := faults.Build(kind)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range errs {
			f := forbear.Classify(faults.Context(kind), e, edge.ClassifyNet)
			if f.Class != want[kind] {
				t.Errorf("%s[%d] %T: got class %v (%s), want %v", kind, i, e, f.Class, f.Type, want[kind])
			}
			if f.Err == nil {
				t.Errorf("%s[%d]: the failure lost its error", kind, i)
			}
		}
	}
}
