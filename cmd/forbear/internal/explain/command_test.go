package explain

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/internal/faults"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestExplainText(t *testing.T) {
	var all strings.Builder
	for _, tt := range []struct {
		args string
		code int
	}{
		{"--status 503", 0},
		{"--status 503 --attempts 4", 1},
		{"--status 503 --elapsed 29500ms", 0},
		{"--status 503 --remaining 2s", 0},
		{"--status 429 --header 'Retry-After: 45'", 1},
		{"--status 429 --header 'Retry-After: 4' --budget 100/19", 0},
		{"--status 429 --budget 100/20", 1},
		{"--status 503 --breaker open", 1},
		{"--status 503 --breaker half-open", 0},
		{"--status 503 --exhausted-below", 1},
		{"--status 503 --unreplayable", 1},
		{"--status 503 --method POST", 1},
		{"--status 503 --method POST --key 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", 0},
		{"--status 503 --method POST --policy idempotency:generate", 2},
		{"--status 503 --method POST --policy '{idempotency: generate}'", 0},
		{"--status 503 --method POST --policy '{idempotent: true}'", 0},
		{"--status 200", 0},
		{"--status 404", 1},
		{"--status 404 --profile lattice", 0},
		{"--status 401", 1},
		{"--status 401 --token-refresh", 0},
		{"--error dns_failure", 0},
		{"--error dns_failure --attempts 2", 1},
		{"--error tls_certificate", 1},
		{"--error other_error", 1},
		{"--error connection_refused --method POST --policy '{retry_unsent: true}'", 0},
		{"--error invalid_configuration", 1},
		{"--error token_permanently_revoked", 1},
		{"--error invalid_configuration --policy '{classify: {unknown: retry}}'", 0},
		{"--status 503 --method post --key 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", 0},
		{"--error dns_not_found --method Get", 0},
		{"--error proxy_502", 0},
		{"--error transport_resend", 0},
		{"--status 503 --kind webhook", 0},
		{"--status 301 --kind webhook", 1},
		{"--status 301", 0},
		{"--status 503 --profile cautious --budget 100/9", 0},
	} {
		got := clitest.Run(t, Command(), "", clitest.Words(tt.args)...)
		if got.Code != tt.code {
			t.Errorf("explain %s: code %d, want %d: %s", tt.args, got.Code, tt.code, got.Errors)
		}
		fmt.Fprintf(&all, "$ forbear explain %s\n%s%s\n", tt.args, got.Out, got.Errors)
	}
	golden(t, "explain.txt", all.String())
}

// What is a success depends on the kind: a delivery takes 2xx alone, any other call all
// below 400. Webhook's dispatcher holds the same table for what it does (TestStatuses).
func TestExplainEveryStatus(t *testing.T) {
	again := []int{408, 429, 500, 502, 503, 504}
	for _, kind := range []string{"sync", "grpc", "event", "batch", "webhook"} {
		for status := 100; status < 1000; status++ {
			want := "stop"
			switch {
			case status/100 == 2 || status < 400 && kind != "webhook":
				want = "success"
			case slices.Contains(again, status):
				want = "retry"
			}
			s := New()
			s.Kind, s.Protocol, s.Status = kind, "http", status
			if x, err := Explain(s); err != nil || x.Decision != want {
				t.Errorf("%s %d: got %s, %v, want %s", kind, status, x.Decision, err, want)
			}
		}
	}
}

func TestExplainUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "what failed?"},
		{"--status 99", "status 99 is not in 100-999"},
		{"--error conection_refused", "did you mean connection_refused?"},
		{"--error connection_closd", "did you mean connection_closed?"},
		{"--error refused", "did you mean connection_refused or http2_refused_stream?"},
		{"--error gremlins", `unknown error "gremlins": forbear explain --help lists them`},
		{"--error http_999999", `unknown error "http_999999"`},
		{"--error forrst_RATE_LIMITED", "give that response with --message"},
		{"--code BUSY", `unknown code "BUSY": forbear explain --help lists them`},
		{"--status 503 --attempts 0", "attempts count from 1"},
		{"--status 503 --error connection_refused", "error does not apply to protocol http"},
		{"--code UNAVAILABEL", "did you mean UNAVAILABLE?"},
		{"--code UNAVAILABLE --method GET", `method "GET" is unknown for grpc`},
		{"--code UNAVAILABLE --message {}", "code does not apply to protocol forrst"},
		{"--message {} --phase 4", "phase 4 is not 1, 2 or 3"},
		{"--status 503 --profile bold", `unknown profile "bold"`},
		{"--status 503 --kind bold", `unknown kind "bold"`},
		{"--status 503 --breaker ajar", `unknown breaker state "ajar"`},
		{"--status 503 --method G/T", `method "G/T" is not an HTTP method`},
		{"--status 503 --budget 3", "want initial/retries"},
		{"--status 503 --header x", "want 'Name: value'"},
		{"--status 503 --now noon", `now "noon" is not an RFC 3339 time`},
		{"--status 503 --attempts -1", "attempts_made -1 is out of range"},
		{"--status 503 -o yaml", `unknown format "yaml"`},
		{"--status 503 --dependency x", "--dependency needs --config"},
		{"--status 503 --header ': 5'", `headers has ["" "5"]: want a name and a value`},
		{"--status 503 --header 'Retry After: 5'", `headers has ["Retry After" "5"]: want a name and a value`},
		{"--status 503 --policy '{max_retries: 9}'", "max_retries 9 is outside 1-5 (R-2)"},
		{"--status 503 --config none.yaml --dependency x", "no such file"},
	} {
		got := clitest.Run(t, Command(), "", clitest.Words(tt.args)...)
		if got.Code != cli.ExitUsage || got.Out != "" || !strings.Contains(got.Errors, tt.want) {
			t.Errorf("explain %s: got %+v, want %q", tt.args, got, tt.want)
		}
	}
}

func TestExplainWithPolicyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("dependencies:\n  payments: {max_retries: 1, backoff: {base: 100ms}}\n")
	got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "--dependency", "payments", "-o", "json")
	const want = `{"id":"","decision":"retry","reason":"retryable","rule":"R-4","class":"transient","wait_min_ms":0,"wait_max_ms":100,"max_retries":1,"notes":[]}` + "\n"
	if got.Code != 0 || got.Out != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	// The only one need not be named, and a slip is told.
	if got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "-o", "json"); got.Code != 0 || got.Out != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	if got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "--dependency", "paymnts"); got.Code != 2 || !strings.Contains(got.Errors, `no dependency "paymnts": did you mean payments?`) {
		t.Errorf("got %+v", got)
	}
	if got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "--dependency", "mail"); got.Code != 2 || !strings.Contains(got.Errors, `no dependency "mail"`) {
		t.Errorf("got %+v", got)
	}
	write("dependencies:\n  payments: {max_retries: 9}\n")
	if got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "--dependency", "payments"); got.Code != 2 || !strings.Contains(got.Errors, path+":2:27: payments: max_retries 9 is outside 1-5 (R-2)") {
		t.Errorf("got %+v", got)
	}
}

// One answer a line, in order; what cannot be judged is an error on its own
// line and the exit code is 2.
// TestExplainHealth asks about a dependency whose health gate is closed, by flag and
// as a line. What a situation does not mention is healthy.
func TestExplainHealth(t *testing.T) {
	const stop = `"decision":"stop","reason":"unhealthy","rule":"R-7","class":"transient"`
	if got := clitest.Run(t, Command(), "", "--status", "503", "--unhealthy", "-o", "json"); got.Code != 1 || !strings.Contains(got.Out, stop) {
		t.Errorf("--unhealthy: got %+v, want %s", got, stop)
	}
	for line, want := range map[string]string{
		`{"id":"1","protocol":"http","method":"GET","status":503,"healthy":false}`: "unhealthy",
		`{"id":"1","protocol":"http","method":"GET","status":503,"healthy":true}`:  "retryable",
		`{"id":"1","protocol":"http","method":"GET","status":503}`:                 "retryable",
	} {
		s, err := Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if x, err := Explain(s); err != nil || x.Reason != want {
			t.Errorf("%s: got %s, %v, want %s", line, x.Reason, err, want)
		}
	}
}

func TestExplainLines(t *testing.T) {
	in, err := os.ReadFile(filepath.Join("testdata", "situations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	got := clitest.Run(t, Command(), string(in), "--json")
	if got.Code != cli.ExitUsage || got.Errors != "" {
		t.Errorf("code %d, errors %q", got.Code, got.Errors)
	}
	golden(t, "answers.jsonl", got.Out)
}

func TestExplainLinesBounds(t *testing.T) {
	long := `{"id":"long","protocol":"http","status":503,"method":"` + strings.Repeat("G", 1<<20) + `"}`
	const short = `{"id":"a","protocol":"http","status":404}`
	const answer = `{"id":"a","decision":"stop","reason":"terminal","rule":"R-4","class":"terminal","wait_min_ms":0,"wait_max_ms":0,"max_retries":3,"notes":[]}` + "\n"
	for _, tt := range []struct {
		name, in, want string
		code           int
	}{
		{"none", "", "", 0},
		{"empty lines", "\n \n" + short + "\r\n\n", answer, 0},
		{"no line feed at the end", short, answer, 0},
		{"too long", short + "\n" + long + "\n" + short, answer + `{"id":"","error":"line 2 is longer than 1048576 bytes"}` + "\n" + answer, 2},
		{"too long at the end", long, `{"id":"","error":"line 1 is longer than 1048576 bytes"}` + "\n", 2},
	} {
		got := clitest.Run(t, Command(), tt.in, "--json")
		if got.Code != tt.code || got.Out != tt.want {
			t.Errorf("%s: got %+v, want %q", tt.name, got, tt.want)
		}
	}
}

// Whoever asks line by line gets each answer before the next question.
func TestExplainLinesAnswersAtOnce(t *testing.T) {
	in, ask := io.Pipe()
	read, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- Command().Run(t.Context(), &cli.Streams{In: in, Out: out, Err: io.Discard}, []string{"--json"})
		out.Close()
	}()
	answers := json.NewDecoder(read)
	for i := range 3 {
		fmt.Fprintf(ask, `{"id":"%d","protocol":"net","error":"connection_reset"}`+"\n", i)
		var a struct{ ID, Decision string }
		if err := answers.Decode(&a); err != nil || a.ID != fmt.Sprint(i) || a.Decision != "retry" {
			t.Errorf("got %+v, %v", a, err)
		}
	}
	ask.Close()
	if code := <-done; code != 0 {
		t.Errorf("code %d", code)
	}
}

func FuzzExplainLines(f *testing.F) {
	in, err := os.ReadFile(filepath.Join("testdata", "situations.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(in) {
		f.Add(string(line))
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := clitest.Run(t, Command(), in, "--json")
		lines := 0
		for line := range strings.Lines(in) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if n := strings.Count(got.Out, "\n"); n != lines {
			t.Errorf("%d answers to %d situations", n, lines)
		}
		for line := range strings.Lines(got.Out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}
	})
}

// The examples of explain's manual do what they show.
func TestExplainExamplesRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte("dependencies: {payments: {max_retries: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const answer = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"req_1","result":null,"errors":[{"code":"RATE_LIMITED","message":""}]}`
	if err := os.WriteFile(filepath.Join(dir, "response.json"), []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for line := range strings.Lines(strings.TrimSpace(Command().Examples)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "forbear explain ")
		if !ok {
			continue // a pipe of the shell
		}
		if got := clitest.Run(t, Command(), "", clitest.Words(command)...); got.Code == cli.ExitUsage {
			t.Errorf("%s: %s", command, got.Errors)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, got:\n%s", name, got)
	}
}

// TestExplainTakesLabels asks with each label that logs and metrics have for a
// failure of the network, a status or a code: people paste those.
func TestExplainTakesLabels(t *testing.T) {
	for label, class := range map[string]string{
		"timeout": "timeout", "eof": "transient", "unexpected_eof": "transient", "connection_closed": "transient", "socket_missing": "transient",
		"http2_goaway": "transient", "http2_stream_reset": "transient", "http2_enhance_your_calm": "throttled", "http2_protocol": "terminal",
		"http2_connection_error": "transient", "http2_not_resent": "transient", "proxy_407": "terminal", "proxy_504": "timeout",
		"tls_alert": "terminal", "tls_record": "terminal", "serialization": "terminal", "canceled": "canceled", "caller_deadline": "canceled",
		"not_http": "terminal", "tls_wanted": "terminal", "http1_wanted": "terminal", "http2_wanted": "terminal", "upgrade_over_http2": "terminal",
		"retryable_error": "transient", "terminal_error": "terminal", "request_body": "canceled", "transport_resend": "transient",
		"unknown": "unknown", "http_503": "transient", "http_429": "throttled", "grpc_UNAVAILABLE": "transient", "grpc_INTERNAL": "terminal",
	} {
		got := clitest.Run(t, Command(), "", "--error", label)
		if want := fmt.Sprintf("failure   %s, class %s\n", label, class); !strings.Contains(got.Out, want) {
			t.Errorf("--error %s: got %+v, want %q", label, got, want)
		}
	}
	if got := clitest.Run(t, Command(), "", "--code", "grpc_UNAVAILABLE"); got.Code != 0 {
		t.Errorf("--code with a label: %+v", got)
	}
}

// TestExplainMethodsInAnyCase asks alike whatever the case, in flags and in JSON.
func TestExplainMethodsInAnyCase(t *testing.T) {
	for _, tt := range [][2]string{
		{"--status 503 --method GET", "--status 503 --method get"},
		{"--status 503 --method PATCH", "--status 503 --method Patch"},
		{"--error connection_reset --method DELETE", "--error connection_reset --method delete"},
		{"--code UNAVAILABLE --method client_stream", "--code UNAVAILABLE --method CLIENT_STREAM"},
		{"--message {} --method POST", "--message {} --method post"},
		{"--message {} --method idempotent", "--message {} --method Idempotent"},
	} {
		want, got := clitest.Run(t, Command(), "", clitest.Words(tt[0])...), clitest.Run(t, Command(), "", clitest.Words(tt[1])...)
		if got != want || got.Code == cli.ExitUsage {
			t.Errorf("%s: got %+v, want %+v as for %s", tt[1], got, want, tt[0])
		}
	}
}

// TestExplainHelpListsNames holds the manual to all names that --error and --code
// take, in lines that fit a terminal.
func TestExplainHelpListsNames(t *testing.T) {
	got := clitest.Run(t, Command(), "", "--help")
	words := strings.FieldsFunc(got.Out, func(r rune) bool { return strings.ContainsRune(" ,.\n\t", r) })
	for _, name := range append(faults.Kinds(), grpcretry.CodeNames()...) {
		if !slices.Contains(words, name) {
			t.Errorf("%s is missing from the manual", name)
		}
	}
	about, _, _ := strings.Cut(got.Out, "Flags:")
	_, about, _ = strings.Cut(about, "Usage:")
	for line := range strings.Lines(about) {
		if len(line) > 79 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
}

// TestExplainNeedsNoEnvironment reads a policy file whose addresses only the running
// service knows. Waivers count, as they do there.
func TestExplainNeedsNoEnvironment(t *testing.T) {
	const text = `dependencies:
  payments:
    url: {env: NO_SUCH_PAYMENTS_URL}
    health: {endpoint: {env: NO_SUCH_HEALTH_URL}}
    max_retries: 7
waivers:
  - {id: W-1, rule: R-2, dependency: payments, reason: for a test, owner: team, expires: 2999-01-01}
`
	path := clitest.File(t, "policy.yaml", text)
	got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "--dependency", "payments")
	if got.Code != 0 || !strings.Contains(got.Out, "1 of 8") {
		t.Errorf("got %+v", got)
	}
	path = clitest.File(t, "policy.yaml", strings.Replace(text, "rule: R-2", "rule: R-3", 1))
	if got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "--dependency", "payments"); got.Code != 2 || !strings.Contains(got.Errors, "(R-2)") {
		t.Errorf("without the waiver: got %+v", got)
	}
}

// TestExplainKnowsTheOwner: a service that does not own the retries has none, and
// the file says which service it is.
func TestExplainKnowsTheOwner(t *testing.T) {
	path := clitest.File(t, "policy.yaml", "service: checkout\ndependencies: {payments: {owner: gateway}}\n")
	got := clitest.Run(t, Command(), "", "--status", "503", "--config", path, "--dependency", "payments")
	if got.Code != 1 || !strings.Contains(got.Out, "not owner (R-7)") || !strings.Contains(got.Out, "gateway owns the retries, but this is the file of checkout") {
		t.Errorf("got %+v", got)
	}
}

// A header that is no pair would be lost, and the wait with it.
func TestExplainPairs(t *testing.T) {
	for _, fields := range []string{
		`"protocol":"http","status":503,"headers":[["Retry-After"]]`,
		`"protocol":"http","status":503,"headers":[["Retry-After","5","6"]]`,
		`"protocol":"http","status":503,"headers":[["X","1"],["","5"]]`,
		`"protocol":"forrst","message":{},"headers":[[]]`,
		`"protocol":"grpc","code":"UNAVAILABLE","trailers":[["a b","5"]]`,
	} {
		got := clitest.Run(t, Command(), `{"id":"a",`+fields+`}`, "--json")
		if got.Code != cli.ExitUsage || !strings.Contains(got.Out, `want a name and a value"}`) {
			t.Errorf("%s: got %+v", fields, got)
		}
	}
}

// TestExplainCountsWhatTheServerAdvises: max_retries is the count that holds for the
// call, which the default for a Forrst code lowers.
func TestExplainCountsWhatTheServerAdvises(t *testing.T) {
	const message = `{"protocol":{"name":"forrst"},"id":"1","result":null,"errors":[{"code":"%s","message":""}]}`
	for code, want := range map[string]string{"INTERNAL_ERROR": `"max_retries":3`, "UNAVAILABLE": `"max_retries":5`} {
		got := clitest.Run(t, Command(), "", "-o", "json", "--kind", "event", "--method", "idempotent", "--message", fmt.Sprintf(message, code))
		if got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("%s: got %d %s %s, want %s", code, got.Code, got.Out, got.Errors, want)
		}
	}
}
