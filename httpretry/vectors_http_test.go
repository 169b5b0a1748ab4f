package httpretry_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/faults"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/reason"
)

// callFacts are the facts of a classify-http or classify-net case around its
// failure. They may stand in the case or in its input.
type callFacts struct {
	Method         string  `json:"method"`
	Profile        string  `json:"profile"`
	IdempotencyKey *string `json:"idempotency_key"`
	AttemptsMade   int     `json:"attempts_made"`
	DNSFailures    int     `json:"dns_failures"`
	Body           string  `json:"body"`
}

func (f callFacts) or(o callFacts) callFacts {
	return callFacts{
		cmp.Or(f.Method, o.Method), cmp.Or(f.Profile, o.Profile), cmp.Or(f.IdempotencyKey, o.IdempotencyKey),
		cmp.Or(f.AttemptsMade, o.AttemptsMade), cmp.Or(f.DNSFailures, o.DNSFailures), cmp.Or(f.Body, o.Body),
	}
}

// word is a header's value in a vector: a string, or what JSON prints as one.
type word string

func (w *word) UnmarshalJSON(data []byte) error {
	switch s, err := strconv.Unquote(string(data)); {
	case err == nil:
		*w = word(s)
	case bytes.ContainsAny(data, "{[\"") || string(data) == "null":
		return fmt.Errorf("%s is not a header's value", data)
	default:
		*w = word(data)
	}
	return nil
}

type classifyCase struct {
	ID    string `json:"id"`
	Input struct {
		Status       int    `json:"status"`
		TokenRefresh bool   `json:"token_refresh"`
		ShouldRetry  word   `json:"x_should_retry"`
		Kind         string `json:"kind"`
		Go           string `json:"go"`
		callFacts
	} `json:"input"`
	callFacts
	Expect string   `json:"expect"`
	AlsoOK []string `json:"also_ok"`
	Basis  string   `json:"basis"`
	Note   string   `json:"note"`
	Go     string   `json:"go"`
}

type classifyFile struct {
	About string         `json:"about"`
	Cases []classifyCase `json:"cases"`
}

const rejected = "reject"

// judge answers a case: retry, no, success, or reject when its configuration is
// refused; or an error when it is not understood.
func (c *classifyCase) judge() (string, error) {
	facts := c.callFacts.or(c.Input.callFacts)
	policy, err := forbear.Profile(facts.Profile)
	if err != nil {
		return rejected, nil
	}
	if facts.Method == "" {
		return "", fmt.Errorf("the case has no method")
	}
	req, err := http.NewRequestWithContext(faults.Context(c.Input.Kind), facts.Method, "http://dependency.test/", nil)
	if err != nil {
		return rejected, nil
	}
	state := forbear.State{
		Attempt: facts.AttemptsMade, DNSFailures: facts.DNSFailures,
		NeedsKey: httpretry.NeedsKey(facts.Method), Refreshable: c.Input.TokenRefresh,
	}
	if facts.IdempotencyKey != nil {
		req.Header.Set(httpretry.HeaderKey, *facts.IdempotencyKey)
		state.Key = *facts.IdempotencyKey
	}
	switch facts.Body {
	case "", "none":
	case "stream without GetBody":
		state.Unreplayable = true
	default:
		return "", fmt.Errorf("body %q is not understood", facts.Body)
	}
	if (c.Input.Kind == "") == (c.Input.Status == 0) {
		return "", fmt.Errorf("the input needs either a status or a kind")
	}
	if c.Input.Kind == "" {
		return c.judgeStatus(&policy, state, req), nil
	}
	return c.judgeKind(&policy, state, req)
}

func (c *classifyCase) judgeStatus(p *forbear.Policy, s forbear.State, req *http.Request) string {
	resp := &http.Response{StatusCode: c.Input.Status, Header: http.Header{}, Body: http.NoBody, Request: req}
	if c.Input.ShouldRetry != "" {
		resp.Header.Set("X-Should-Retry", string(c.Input.ShouldRetry))
	}
	return answer(p, s, httpretry.Classify(req, resp, nil))
}

// judgeKind asks about every error of the kind, which must be of one mind.
func (c *classifyCase) judgeKind(p *forbear.Policy, s forbear.State, req *http.Request) (string, error) {
	errs, err := faults.Build(c.Input.Kind)
	if err != nil {
		return "", err
	}
	answers := map[string]bool{}
	for _, e := range errs {
		answers[answer(p, s, httpretry.Classify(req, nil, e))] = true
	}
	for a := range answers {
		if len(answers) == 1 {
			return a, nil
		}
	}
	return "", fmt.Errorf("the errors of kind %s are answered in %d ways", c.Input.Kind, len(answers))
}

// answer is what the decision amounts to in the words of the vectors.
func answer(p *forbear.Policy, s forbear.State, f forbear.Failure) string {
	d := forbear.Decide(p, s, f, time.Unix(1_000, 0), func() float64 { return 0.5 })
	switch {
	case d.Retry:
		return "retry"
	case d.Reason == reason.Success:
		return "success"
	}
	return "no"
}

// check returns what is wrong with the answer to a case, or nil.
func (c *classifyCase) check(words ...string) error {
	for _, want := range append([]string{c.Expect}, c.AlsoOK...) {
		if !slices.Contains(words, want) {
			return fmt.Errorf("expectation %q is not one of %s", want, strings.Join(words, ", "))
		}
	}
	got, err := c.judge()
	if err != nil {
		return err
	}
	if got != c.Expect && !slices.Contains(c.AlsoOK, got) {
		return fmt.Errorf("got %q, want %q or one of %q (%s; %s)", got, c.Expect, c.AlsoOK, c.Basis, c.Note)
	}
	return nil
}

func runClassify(t *testing.T, name string, words ...string) {
	var file classifyFile
	vectors.Load(t, name, &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			if err := c.check(words...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestVectorsClassifyHTTP(t *testing.T) {
	runClassify(t, "classify-http.json", "retry", "no", "success", rejected)
}

// TestVectorsClassifyNetOverHTTP asks the transport's own classification; the root
// package asks its own about the same cases.
func TestVectorsClassifyNetOverHTTP(t *testing.T) {
	runClassify(t, "classify-net.json", "retry", "no")
}

// TestClassifyVectorsFail holds the runner to its word: it fails on a wrong
// expectation, and on whatever it does not understand.
func TestClassifyVectorsFail(t *testing.T) {
	const good = `{"id":"x","input":{"status":503,"token_refresh":true,"x_should_retry":"true"},"method":"POST",` +
		`"profile":"standard","idempotency_key":"k","expect":"retry"}`
	for _, tc := range []struct{ name, replace, with string }{
		{"good", "", ""},
		{"wrong expectation", `"retry"`, `"no"`},
		{"unknown expectation", `"retry"`, `"perhaps"`},
		{"server says no", `"true"`, `false`},
		{"unknown kind", `"status":503`, `"kind":"gremlins"`},
		{"nothing to judge", `"status":503`, `"status":0`},
		{"unknown field", `"method"`, `"surprise":1,"method"`},
		{"unknown profile", `"standard"`, `"reckless"`},
		{"unknown body", `"method"`, `"body":"half","method"`},
		{"too long a key", `"k"`, `"` + strings.Repeat("k", 65) + `"`},
		{"no method", `"POST"`, `""`},
	} {
		var c classifyCase
		err := vectors.Decode([]byte(strings.Replace(good, tc.replace, tc.with, 1)), &c)
		if err == nil {
			err = c.check("retry", "no", "success", rejected)
		}
		if (err == nil) != (tc.name == "good") {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"x":1}`), new(word)); err == nil {
		t.Error("an object passed as a header's value")
	}
}
