package explain

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/internal/faults"
)

// Command returns the command explain. The command opens no connection. It is safe
// to try it on facts copied from a production log.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "explain",
		Summary: "say whether a failed call would be retried, or what a reason or finding means",
		Usage:   "[FLAGS] | --json < situations.jsonl | WORD [-o text|json]",
		About: `
Explain makes forbear's own decision about one situation given by flags,
or about many given as JSON lines on standard input.

One situation: exit code 0 means retry or success, 1 means no retry, 2 means
that explain could not judge.

JSON lines: one verdict per line, in the same order. A situation that cannot
be judged gets {"id","error"}, and the exit code is 2.

WORD is a reason from logs, metrics or responses (budget_exhausted), a rule
(R-7), or a finding (FC207, FB1001): what it means, and what to do.

--error takes the error types of logs and metrics, and:

` + nameLines(faults.Kinds()) + `

--code takes numbers, and:

` + nameLines(grpcretry.CodeNames()),
		Examples: `
forbear explain --status 503
forbear explain --status 429 --header 'Retry-After: 45' --elapsed 10s
forbear explain --method POST --status 503 --key 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2
forbear explain --error connection_reset --attempts 3 --budget 100/20
forbear explain --code UNAVAILABLE --trailer 'grpc-retry-pushback-ms: 250'
forbear explain --message @response.json --key 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2 --kind event
forbear explain --status 503 --config policy.yaml --dependency payments
forbear explain budget_exhausted
echo '{"id":"a","protocol":"http","status":503}' | forbear explain --json
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		q := &question{Situation: New()}
		q.register(f)
		words, code, done := c.Operands(std, f, args)
		switch {
		case done:
			return code
		case q.format != "text" && q.format != "json":
			return std.Fail("explain: unknown format %q: want text or json", q.format)
		case len(words) > 0:
			return q.word(std, f, strings.Join(words, " "))
		case q.lines:
			return explainLines(std)
		}
		return q.explain(std)
	}
	return c
}

// explainLines judges the situations on standard input. One that cannot be judged
// is an error on its own line, so that a program that sent a thousand has a
// thousand results, in its own order. The exit code says only whether all could be
// judged, since a thousand decisions do not fit into one code.
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

// question is one situation given by flags: they fill it, and explain reports what is
// missing.
type question struct {
	Situation
	lines      bool   // situations come as JSON lines instead
	format     string // text or json
	config     string // policy file, or ""
	dependency string // in that file
}

// word explains a reason, which is no situation and has no other flag than -o.
func (q *question) word(std *cli.Streams, f *flag.FlagSet, word string) int {
	var other string
	f.Visit(func(f *flag.Flag) {
		if f.Name != "o" {
			other = f.Name
		}
	})
	status, err := strconv.Atoi(word)
	switch {
	case err == nil:
		return std.Fail("explain: unexpected argument %q: a status is --status %d (see forbear explain --help)", word, status)
	case other != "":
		return std.Fail("explain: unexpected argument %q: a word goes without --%s (see forbear explain --help)", word, other)
	}
	return Word(std, "explain", word, q.format)
}

// explain judges the one situation. The protocol follows from what failed, so
// that the common question needs a single flag. Of several facts the more specific
// one wins: a Forrst message comes inside an HTTP response, so it is asked about
// before the status. Faults of the command line have exit code 2 and never look like
// a decision.
func (q *question) explain(std *cli.Streams) int {
	if err := q.readLabel(); err != nil {
		return std.Fail("explain: %v", err)
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
		p, service, err := loadPolicy(q.config, q.dependency)
		if err != nil {
			return std.Fail("explain: %v", err)
		}
		q.Base, q.Service = &p, service
	} else if q.dependency != "" {
		return std.Fail("explain: --dependency needs --config")
	}
	x, err := Explain(q.Situation)
	if err != nil {
		return std.Fail("explain: %v", err)
	}
	if q.format == "json" {
		enc := json.NewEncoder(std.Out)
		enc.SetEscapeHTML(false) // as in the JSON lines: notes hold < and &
		_ = enc.Encode(x.Verdict)
	} else {
		fmt.Fprint(std.Out, explanation(x, q.Budget))
	}
	if x.Decision == "stop" {
		return cli.ExitFound
	}
	return cli.ExitOK
}
