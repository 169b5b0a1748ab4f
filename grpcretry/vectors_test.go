package grpcretry_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/reason"
)

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

// judge decides about the case with the real classifier.
func (c *vectorCase) judge(now time.Time) (forbear.Decision, error) {
	if c.Method != "unary" {
		return forbear.Decision{}, fmt.Errorf("method %q is not understood", c.Method)
	}
	p, err := forbear.Profile(c.Profile)
	if err != nil {
		return forbear.Decision{}, err
	}
	code, ok := grpcretry.ParseCode(c.Input.Name)
	if !ok || code != codes.Code(c.Input.Code) {
		return forbear.Decision{}, fmt.Errorf("code %d is not %q", c.Input.Code, c.Input.Name)
	}
	p.Kind = forbear.GRPC
	switch n := c.Input.MaxAttempts; { // gRFC A6 counts attempts
	case n == 1:
		p.Disabled = true
	case n > 1:
		p.MaxRetries = n - 1
	}
	ctx := context.Background()
	if c.Input.CallerDeadlinePassed {
		passed, cancel := context.WithDeadline(ctx, time.Unix(1, 0))
		defer cancel()
		ctx = passed
	}
	var trailer metadata.MD
	if c.Input.Pushback != nil {
		trailer = metadata.MD{grpcretry.TrailerPushback: c.Input.Pushback}
	}
	s := forbear.State{Attempt: cmp.Or(c.Input.AttemptsMade, 1), Start: now, Unreplayable: c.Input.HeadersReceived}
	if ms := c.Input.RemainingMS; ms != nil {
		s.Deadline = now.Add(time.Duration(*ms) * time.Millisecond)
	}
	f := grpcretry.Classify(ctx, status.Error(code, "text that nobody reads"), trailer)
	return forbear.Decide(&p, s, f, now, func() float64 { return 0.5 }), nil
}

func TestVectorsClassifyGRPC(t *testing.T) {
	var file struct {
		About any          `json:"about"`
		Cases []vectorCase `json:"cases"`
	}
	vectors.Load(t, "classify-grpc.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			for _, want := range append([]string{c.Expect}, c.AlsoOK...) {
				if !slices.Contains([]string{"retry", "no", "success"}, want) {
					t.Fatalf("expectation %q is not understood", want)
				}
			}
			d, err := c.judge(time.Unix(1_000_000, 0))
			if err != nil {
				t.Fatal(err)
			}
			got := "no"
			switch {
			case d.Retry:
				got = "retry"
			case d.Reason == reason.Success:
				got = "success"
			}
			if got != c.Expect && !slices.Contains(c.AlsoOK, got) {
				t.Errorf("%s: got %s (%v), want %s (%s)", c.Input.Name, got, d.Reason, c.Expect, c.Basis)
			}
			// The server's own wait: none shorter, and the spread above it stays small.
			if ms := c.WaitMS; ms != nil && d.Retry {
				want := time.Duration(*ms) * time.Millisecond
				if d.Floor != want || d.Ceiling > want+want/10 {
					t.Errorf("wait %v to %v, want %v", d.Floor, d.Ceiling, want)
				}
			}
		})
	}
}
