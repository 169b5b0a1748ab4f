package explain

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// register registers the flags: each is a field of the situation, under the name
// that a reader of the command line understands. --attempts 0 is refused, and not read as
// the default of 1.
//
// Every flag has a field in the JSON form, so that a question asked by hand can
// become a test vector.
func (q *question) register(f *flag.FlagSet) {
	s := &q.Situation
	f.BoolVar(&q.lines, "json", false, "read situations as JSON lines from standard input")
	f.StringVar(&q.format, "o", "text", "output: `text or json`")
	f.StringVar(&q.config, "config", "", "take the policy from this `file`")
	f.StringVar(&q.dependency, "dependency", "", "`name` of the dependency in it")
	f.StringVar(&s.Profile, "profile", "", "standard, cautious or lattice")
	f.StringVar(&s.Kind, "kind", "", "sync, grpc, event, webhook or batch")
	f.Func("policy", "policy fields as YAML or JSON, such as '{max_retries: 1}'", func(v string) error {
		s.Policy = json.RawMessage(v)
		return nil
	})
	f.StringVar(&s.Protocol, "protocol", "", "http, net, grpc or forrst (default: from the other flags)")
	f.StringVar(&s.Method, "method", "", "HTTP method (default GET)")
	f.StringVar(&s.IdempotencyKey, "key", "", "Idempotency-Key of the request")
	f.IntVar(&s.Status, "status", 0, "HTTP status of the response")
	f.Func("header", "response header, as 'Name: value'; repeatable", pairs(&s.Headers, "want 'Name: value'"))
	f.StringVar(&s.Error, "error", "", "`name` of the network error, such as connection_refused")
	f.StringVar(&s.Code, "code", "", "gRPC `code`, such as UNAVAILABLE or 14")
	f.Func("trailer", "gRPC response trailer, as 'name: value'; repeatable", pairs(&s.Trailers, "want 'name: value'"))
	f.Func("message", "Forrst response `envelope`, as JSON or @FILE", s.readMessage)
	f.IntVar(&s.Phase, "phase", 0, "phase of the Forrst migration, 1 to 3 (default 1)")
	f.Func("attempts", "attempts made so far (default 1)", func(v string) error {
		n, err := strconv.Atoi(v)
		if err == nil && n == 0 {
			return errors.New("attempts count from 1, the one that failed")
		}
		s.AttemptsMade = n
		return err
	})
	f.IntVar(&s.DNSFailures, "dns-failures", 0, "attempts whose name did not resolve")
	f.Func("elapsed", "time since the call began, such as 2s", func(v string) error {
		d, err := time.ParseDuration(v)
		s.ElapsedMS = d.Milliseconds()
		return err
	})
	f.Func("remaining", "time until the caller's deadline, such as 5s", func(v string) error {
		d, err := time.ParseDuration(v)
		s.RemainingMS = new(d.Milliseconds())
		return err
	})
	f.StringVar(&s.Now, "now", "", "current time, in RFC 3339")
	f.BoolFunc("unreplayable", "the request body cannot be sent again", opposite(&s.Replayable))
	f.BoolVar(&s.TokenRefresh, "token-refresh", false, "a source of fresh credentials is configured")
	f.StringVar(&s.Breaker, "breaker", "", "closed, open or half-open")
	f.BoolFunc("unhealthy", "the health gate stops retries", opposite(&s.Healthy))
	f.BoolVar(&s.ExhaustedBelow, "exhausted-below", false, "a layer below has used its retries")
	f.Func("budget", "requests/retries in the budget's window, such as 100/3", s.readBudget)
}

// opposite reads a flag that says the opposite of a fact.
func opposite(fact *bool) func(string) error {
	return func(v string) error {
		set, err := strconv.ParseBool(v)
		*fact = !set
		return err
	}
}

// pairs reads a flag that may be repeated: names and values around a colon. The
// order is kept, and a name may come twice, because servers send repeated headers
// and the classifiers have to cope with them.
func pairs(list *[][]string, want string) func(string) error {
	return func(v string) error {
		name, value, ok := strings.Cut(v, ":")
		if !ok {
			return errors.New(want)
		}
		*list = append(*list, []string{strings.TrimSpace(name), strings.TrimSpace(value)})
		return nil
	}
}

// readBudget reads --budget: two counts, as the metrics of a dependency show them.
// Negative counts pass here and are refused with the situation, so that JSON and
// flags have one check.
func (s *Situation) readBudget(v string) error {
	initial, retries, ok := strings.Cut(v, "/")
	a, errA := strconv.ParseInt(initial, 10, 64)
	b, errB := strconv.ParseInt(retries, 10, 64)
	if !ok || errA != nil || errB != nil {
		return errors.New("want initial/retries, such as 100/3")
	}
	s.Budget = &Budget{Initial: a, Retries: b}
	return nil
}

// maxMessage bounds the file of a Forrst message, in bytes. A file given by mistake,
// such as a log, is refused instead of being parsed.
const maxMessage = 1 << 20

// readMessage reads --message. Text that is no JSON is kept as a JSON string: the
// question may be what becomes of a response that breaks the protocol. A name after
// @ is a path on this machine, which only the command line may give: JSON situations
// come from elsewhere and never open files.
func (s *Situation) readMessage(v string) error {
	if name, ok := strings.CutPrefix(v, "@"); ok {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if len(data) > maxMessage {
			return fmt.Errorf("%s is longer than %d bytes", name, maxMessage)
		}
		v = string(data)
	}
	if json.Valid([]byte(v)) {
		s.Message = json.RawMessage(v)
		return nil
	}
	raw, err := json.Marshal(v)
	s.Message = raw
	return err
}
