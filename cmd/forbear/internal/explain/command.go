package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/policies"
)

func Command() *cli.Command {
	c := &cli.Command{
		Name:    "explain",
		Summary: "tell whether a failed call would be retried, when, and by which rule",
		Usage:   "[FLAGS] | --json < situations.jsonl",
		About: `
Explain asks the same decision that every part of forbear asks, about one
situation given by flags, or about many given as JSON lines on standard input.

One situation: exit code 0 means that the call would be retried or has
succeeded, 1 that it would not be retried, 2 that explain could not judge.

JSON lines: one answer a line, in the same order. A situation that cannot be
judged gets {"id","error"} as its answer; the others go on, and the exit code
is 2.`,
		Examples: `
forbear explain --status 503
forbear explain --status 429 --header 'Retry-After: 45' --elapsed 10s
forbear explain --method POST --status 503 --key 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2
forbear explain --error connection_reset --attempts 3 --budget 100/20
forbear explain --code UNAVAILABLE --trailer 'grpc-retry-pushback-ms: 250'
forbear explain --message @answer.json --key 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2 --kind event
forbear explain --status 503 --config policy.yaml --dependency payments
echo '{"id":"a","protocol":"http","status":503}' | forbear explain --json
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		q := newQuestion(f)
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		if q.lines {
			return explainLines(std)
		}
		return q.answer(std)
	}
	return c
}

// explainLines answers the situations on standard input.
func explainLines(std *cli.Streams) int {
	bad, err := Lines(std.In, std.Out)
	switch {
	case err != nil:
		return std.Fail("explain: %v", err)
	case bad > 0:
		return cli.ExitUsage
	default:
		return cli.ExitOK
	}
}

// question is one situation given by flags.
type question struct {
	Situation
	lines              bool
	format             string
	config, dependency string
}

func newQuestion(f *flag.FlagSet) *question {
	q := &question{}
	s := &q.Situation
	f.BoolVar(&q.lines, "json", false, "read situations as JSON lines from standard input")
	f.StringVar(&q.format, "o", "text", "output format: `text or json`")
	f.StringVar(&q.config, "config", "", "take the policy from this policy `file`")
	f.StringVar(&q.dependency, "dependency", "", "the `name` of the dependency in the policy file")
	f.StringVar(&s.Profile, "profile", "", "standard, cautious or lattice")
	f.StringVar(&s.Kind, "kind", "", "sync, grpc, event, webhook or batch")
	f.Func("policy", "policy fields as YAML or JSON, such as '{max_retries: 1}'", func(v string) error {
		s.Policy = json.RawMessage(v)
		return nil
	})
	f.StringVar(&s.Protocol, "protocol", "", "http, net, grpc or forrst (default: by the other flags)")
	f.StringVar(&s.Method, "method", "", "the HTTP method (default GET)")
	f.StringVar(&s.IdempotencyKey, "key", "", "the Idempotency-Key of the request")
	f.IntVar(&s.Status, "status", 0, "the HTTP status of the response")
	f.Func("header", "a header of the response, as 'Name: value'; may be repeated", func(v string) error {
		name, value, ok := strings.Cut(v, ":")
		if !ok {
			return errors.New("want 'Name: value'")
		}
		s.Headers = append(s.Headers, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
		return nil
	})
	f.StringVar(&s.Error, "error", "", "the network error, such as connection_refused")
	grpcFlags(f, s)
	forrstFlags(f, s)
	f.Func("attempts", "attempts made so far (default 1)", func(v string) error {
		n, err := strconv.Atoi(v)
		s.AttemptsMade = &n
		return err
	})
	f.IntVar(&s.DNSFailures, "dns-failures", 0, "how many of them failed to resolve the name")
	f.Func("elapsed", "time since the call began, such as 2s", func(v string) error {
		d, err := time.ParseDuration(v)
		s.ElapsedMS = d.Milliseconds()
		return err
	})
	f.Func("remaining", "time until the caller's deadline, such as 5s", func(v string) error {
		d, err := time.ParseDuration(v)
		ms := d.Milliseconds()
		s.RemainingMS = &ms
		return err
	})
	f.StringVar(&s.Now, "now", "", "the present, as an RFC 3339 time")
	f.BoolFunc("unreplayable", "the request's body cannot be sent again", func(v string) error {
		gone, err := strconv.ParseBool(v)
		replayable := !gone
		s.Replayable = &replayable
		return err
	})
	f.BoolVar(&s.TokenRefresh, "token-refresh", false, "a source of fresh credentials is configured")
	f.StringVar(&s.Breaker, "breaker", "", "closed, open or half-open")
	f.BoolVar(&s.ExhaustedBelow, "exhausted-below", false, "a layer below has used its retries")
	f.Func("budget", "requests and retries in the budget's window, as 100/3", func(v string) error {
		initial, retries, ok := strings.Cut(v, "/")
		a, errA := strconv.ParseInt(initial, 10, 64)
		b, errB := strconv.ParseInt(retries, 10, 64)
		if !ok || errA != nil || errB != nil {
			return errors.New("want initial/retries, such as 100/3")
		}
		s.Budget = &Budget{Initial: a, Retries: b}
		return nil
	})
	return q
}

// answer explains the one situation.
func (q *question) answer(std *cli.Streams) int {
	if q.format != "text" && q.format != "json" {
		return std.Fail("explain: unknown format %q: want text or json", q.format)
	}
	if q.Protocol == "" {
		switch {
		case q.Message != nil:
			q.Protocol = "forrst"
		case q.Status != 0:
			q.Protocol = "http"
		case q.Error != "":
			q.Protocol = "net"
		case q.Code != "":
			q.Protocol = "grpc"
		default:
			return std.Fail("explain: what failed? give --status or --error, or see forbear explain --help")
		}
	}
	if q.config != "" {
		p, err := policies.Load(q.config, q.dependency)
		if err != nil {
			return std.Fail("explain: %v", err)
		}
		q.Base = &p
	} else if q.dependency != "" {
		return std.Fail("explain: --dependency needs --config")
	}
	x, err := Explain(q.Situation)
	if err != nil {
		return std.Fail("explain: %v", err)
	}
	if q.format == "json" {
		enc := json.NewEncoder(std.Out)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(x.Answer)
	} else {
		fmt.Fprint(std.Out, explanation(x, q.Budget))
	}
	if x.Decision == "stop" {
		return cli.ExitFound
	}
	return cli.ExitOK
}

// explanation is the readable form of an answer.
func explanation(x Explanation, budget *Budget) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s", x.Decision)
	if x.Decision == "retry" {
		fmt.Fprintf(&b, " after %s", span(x.Wait.Floor, x.Wait.Ceiling))
	}
	if x.Decision != "success" {
		fmt.Fprintf(&b, ": %s", because(x.Reason, x.Rule))
	}
	b.WriteString("\n\n")
	line("failure", "%s, class %s", cmp.Or(x.Type, "none"), x.Class)
	line("attempt", "%d of %d, within %v in all", x.Attempt, x.Retries+1, x.Policy.Total)
	if budget != nil {
		p := x.Policy.Budget
		allowed := "any number of"
		if n := p.Allowed(budget.Initial); n < math.MaxInt64 {
			allowed = strconv.FormatInt(n, 10)
		}
		line("budget", "%d of %s retries used for %d requests in %v (R-7)", budget.Retries, allowed, budget.Initial, p.Window)
	}
	for _, n := range x.Notes {
		line("note", "%s", n)
	}
	if len(x.Steps) == 0 {
		return b.String()
	}
	b.WriteString("\n  should every attempt fail like this one:\n\n")
	fmt.Fprintf(&b, "    %-9s %-18s %s\n", "attempt", "wait", "sent at the latest after")
	for _, s := range x.Steps {
		if s.Retry {
			fmt.Fprintf(&b, "    %-9d %-18s %v\n", s.Attempt, span(s.Floor, s.Ceiling), s.AtTheLatest.Round(time.Millisecond))
		} else {
			fmt.Fprintf(&b, "    %-9s %s\n", "then", "stop: "+because(s.Reason.String(), s.Reason.Rule()))
		}
	}
	return b.String()
}

func because(reason, rule string) string {
	reason = strings.ReplaceAll(reason, "_", " ")
	if rule == "" {
		return reason
	}
	return reason + " (" + rule + ")"
}

func span(floor, ceiling time.Duration) string {
	floor, ceiling = floor.Round(time.Millisecond), ceiling.Round(time.Millisecond)
	if floor == ceiling {
		return floor.String()
	}
	return floor.String() + " to " + ceiling.String()
}
