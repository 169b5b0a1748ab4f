package page

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storm"
)

// read is a reader of policy files: each word is a dependency, and never does not retry.
func read(text []byte) (map[string]forbear.Policy, error) {
	if string(text) == "bad" {
		return nil, errors.Join(&storm.FieldError{Path: "line 3, column 5", Detail: "one"}, &storm.FieldError{Path: "line 4, column 1", Detail: "two"})
	}
	all := map[string]forbear.Policy{}
	for name := range strings.FieldsSeq(string(text)) {
		all[name] = forbear.Policy{Disabled: name == "never"}
	}
	return all, nil
}

// with returns what the page asks, with a policy file and a fault that is retried.
func with(text, dependency string) string {
	p, err := json.Marshal(policy{Text: text, Dependency: dependency})
	if err != nil {
		panic(err)
	}
	q := strings.Replace(asked, `"brownout","at":"10s","for":"10s","factor":0.5`, `"errors","at":"10s","for":"10s","rate":0.1`, 1)
	return strings.TrimSuffix(q, "}") + `,"policy":` + string(p) + "}"
}

func TestPolicyFile(t *testing.T) {
	race.TooSlow(t, "whole scenarios; TestRun asks the handler, too")
	ask := func(dependency string) (names []string, retries float64) {
		w := post(t, Handler(read), with("search never payments", dependency))
		var body struct {
			Dependencies []string
			Results      []struct{ Summary storm.Summary }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %v: %s", w.Code, err, w.Body)
		}
		return body.Dependencies, body.Results[0].Summary.Retries
	}
	names, first := ask("")
	if want := []string{"never", "payments", "search"}; !slices.Equal(names, want) || first != 0 {
		t.Errorf("%q and %v retries, want %q and none: the first by name", names, first, want)
	}
	if _, retries := ask("search"); retries == 0 {
		t.Error("the policy of search retries")
	}
}

func TestPolicyFileRefusals(t *testing.T) {
	const secret = "token-in-the-file"
	for _, tt := range []struct {
		name       string
		read       ReadPolicies
		text, from string
		part       string
	}{
		{"no reader", nil, secret, "", "forbear sim run --policy"},
		{"mistakes", read, "bad", "", `[{"path":"line 3, column 5","detail":"one"},{"path":"line 4, column 1","detail":"two"}]`},
		{"no dependency", read, " ", "", "write one below dependencies"},
		{"another dependency", read, secret, "search", `no dependency \"search\"`},
		{"too large", read, strings.Repeat(secret+" ", maxPolicy/len(secret)), "", "larger than the 256 KiB"},
	} {
		w := post(t, Handler(tt.read), with(tt.text, tt.from))
		if body := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, tt.part) || strings.Contains(body, secret) {
			t.Errorf("%s: %d %.300s, want %q and nothing of the file", tt.name, w.Code, body, tt.part)
		}
	}
}

// A case runs as it is: the page comes to the verdict of forbear sim run.
func TestCases(t *testing.T) {
	race.TooSlow(t, "whole scenarios; TestRun asks the handler, too")
	for _, s := range storm.Named() {
		if e, err := s.Estimate(storm.Options{}); err != nil || e.Events > ringtest.Size(1e6, 1e9) {
			continue
		}
		want, err := storm.Run(t.Context(), s, storm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q, err := json.Marshal(request{Scenario: s, Variants: []string{""}, Herd: 1000})
		if err != nil {
			t.Fatal(err)
		}
		w := post(t, Handler(nil), string(q))
		var body struct {
			Results []struct{ Summary storm.Summary }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK {
			t.Errorf("%s: %d %v: %s", s.Name, w.Code, err, w.Body)
		} else if got := body.Results[0].Summary.Verdict; got != want.Summary.Verdict {
			t.Errorf("%s: %s, want %s", s.Name, got, want.Summary.Verdict)
		}
	}
}
