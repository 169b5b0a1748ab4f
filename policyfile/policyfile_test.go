//forbear:plain files are read on one goroutine
package policyfile

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/waitform"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var today = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

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

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoodFile(t *testing.T) {
	f, err := parse("good.yaml", read(t, "good.yaml"), today)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]forbear.Policy{
		"payments": {
			MaxRetries: 2, Total: 20 * time.Second, Owner: "checkout", Keys: forbear.KeyGenerate,
			Backoff: forbear.Backoff{Base: 200 * time.Millisecond, Cap: 5 * time.Second, Jitter: forbear.JitterDecorrelated},
			Budget:  budget.Policy{Ratio: 0.05, Window: time.Minute},
			Breaker: breaker.Policy{
				FailureRate: 0.3, Window: 200, WindowTime: time.Minute, OpenFor: 10 * time.Second, Probes: 3, OnBudget: breaker.BudgetOpens,
			},
			MaxConcurrent: 64,
			Classify: map[string]forbear.Class{
				"http_404": forbear.ClassTransient, "http_5xx": forbear.ClassThrottled, "grpc_NOT_FOUND": forbear.ClassTerminal,
			},
			WaitHeaders: map[string]string{
				"X-Rate-Limit-Reset": waitform.Unix, "x-backoff": waitform.Milliseconds, "X-Pause": waitform.Auto,
			},
		},
		"hooks": {
			Kind: forbear.Webhook, MaxAttempts: 3,
			Backoff: forbear.Backoff{Schedule: []time.Duration{0, time.Second, 5 * time.Second}},
		},
		"reports": {
			Disabled: true, Total: 20 * time.Second,
			Budget:  budget.Policy{Ratio: 0.10, Window: time.Minute},
			Breaker: breaker.Policy{Window: 200, Probes: 3},
		},
	}
	lattice, _ := forbear.Profile("lattice")
	lattice.MaxRetries = 7
	want["search"] = lattice
	for name, policy := range want {
		if got, ok := f.Policy(name); !ok || !reflect.DeepEqual(got, policy) {
			t.Errorf("policy of %s = %+v, want %+v", name, got, policy)
		}
	}
	if len(f.Dependencies) != len(want) || f.Dependencies[0].Name != "payments" || f.Dependencies[3].Name != "reports" {
		t.Errorf("dependencies are not those of the file in its order: %+v", f.Dependencies)
	}
	routes := []Route{
		{Prefix: "/payments", Dependency: "payments", At: Position{File: "good.yaml", Line: 44, Column: 7}},
		{Host: "search.local", Dependency: "search", At: Position{File: "good.yaml", Line: 46, Column: 7}},
	}
	if f.Service != "checkout" || !slices.Equal(f.Gateway.Listen, Addresses{"127.0.0.1:8080"}) || !reflect.DeepEqual(f.Gateway.Routes, routes) {
		t.Errorf("service %q, gateway %+v", f.Service, f.Gateway)
	}
	end := time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC) // the day itself counts
	if len(f.Waivers) != 1 || !f.Waivers[0].Expires.Equal(end) {
		t.Errorf("waivers = %+v", f.Waivers)
	}
}

// What the file accepts, a Retryer accepts, the waived dependency included.
func TestGoodFileBuildsRetryers(t *testing.T) {
	f, err := Parse("good.yaml", read(t, "good.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Dependencies {
		opts := append(f.Options(), forbear.WithCallerDeadLetter())
		if _, err := forbear.New(d.Name, d.Policy, opts...); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := parse("bad.yaml", read(t, "bad.yaml"), today)
	if err == nil {
		t.Fatal("no fault found")
	}
	golden(t, "bad.txt", err.Error()+"\n")
	if strings.Contains(err.Error(), "secret") {
		t.Error("a credential of the file is in its faults")
	}
	f, ok := errors.AsType[*Fault](err)
	if !ok || f.Line != 1 {
		t.Errorf("first fault = %+v", f)
	}
}

func TestUnreadable(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'j'; c++ {
		p := string(c - 1)
		bomb.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 8) + "*" + p + "]\n")
	}
	tests := []struct{ name, data, want string }{
		{"empty", "", "f:1:1: the file is empty: forbear init writes one to start from"},
		{"comment", "# nothing\n", "f:1:1: the file is empty: forbear init writes one to start from"},
		{"list", "- a\n", "f:1:1: the policy file is a list: want a mapping"},
		{"open bracket", "service: [a\nb: 2", "f:2:2: not YAML: while parsing a flow sequence, did not find expected ',' or ']'"},
		{"tab", "gateway:\n\tlisten: a\n", "f:2:1: not YAML: a line is indented with a tab: use spaces"},
		{"tab after spaces", "gateway:\n  \tlisten: a\n", "f:2:3: not YAML: a line is indented with a tab: use spaces"},
		{"no token", "service: @a\n", "f:1:10: not YAML: while scanning for the next token, found character that cannot start any token"},
		{"two documents", "service: a\n---\nservice: b\n", "f:2:1: a second YAML document: the file may hold only one"},
		{"unknown anchor", "service: *no\n", "f:1:10: not YAML: unknown anchor 'no' referenced"},
		{"self", "service: &x [*x]\n", "f:1:14: alias *x contains itself"},
		{"bomb", bomb.String(), "f:1:1: aliases expand the file beyond 500000 values"},
		{"large", strings.Repeat("#", MaxSize+1), "f:1:1: the file is larger than 4 MiB"},
		{"tag", "service: !!str x\n", "f:1:10: service has the tag !!str: tags are not supported"},
		{"key", "[a]: b\n", "f:1:1: a key of the policy file is a list: want a name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f", []byte(tt.data))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	for range 5000 {
		b.WriteString("- {}\n")
	}
	_, err := Parse("f", []byte("waivers:\n"+b.String()))
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Faults) != 100 || e.More != 19_900 {
		t.Fatalf("got %d faults and %d more, want 100 and 19900", len(e.Faults), e.More)
	}
}

func TestLoadMissing(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want not exist", err)
	}
}

// TestPreviewNeedsNoEnvironment reads what Load refuses for an unset variable alone,
// and refuses what leaves the standard without a waiver.
func TestPreviewNeedsNoEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(rule string) {
		text := "dependencies: {a: {url: {env: NO_SUCH_URL}, max_retries: 7}}\n" +
			"waivers: [{id: W, rule: " + rule + ", dependency: a, reason: test, owner: o, expires: 2999-01-01}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("R-2")
	if _, err := Load(path); err == nil {
		t.Error("Load ran without the variable")
	}
	f, err := Preview(path)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := f.Policy("a"); !ok || p.MaxRetries != 7 {
		t.Errorf("got %+v, want the waived policy", p)
	}
	write("R-3")
	if _, err := Preview(path); err == nil {
		t.Error("a policy outside of the standard passed without its waiver")
	}
}

func TestParsePolicy(t *testing.T) {
	base := forbear.Policy{MaxRetries: 2, Classify: map[string]forbear.Class{"http_404": forbear.ClassTransient}}
	p, err := ParsePolicy("policy", []byte(`{"total":"5s","backoff":{"base":"100ms"},"classify":{"http_404":"terminal"}}`), base)
	if err != nil {
		t.Fatal(err)
	}
	want := forbear.Policy{
		MaxRetries: 2, Total: 5 * time.Second,
		Backoff:  forbear.Backoff{Base: 100 * time.Millisecond},
		Classify: map[string]forbear.Class{"http_404": forbear.ClassTerminal},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, want %+v", p, want)
	}
	if base.Classify["http_404"] != forbear.ClassTransient {
		t.Error("the base was changed")
	}
	_, err = ParsePolicy("policy", []byte(`{"max_retries":9,"extends":"cautios"}`), base)
	const faults = "policy:1:16: policy: max_retries 9 is outside 1-5 (R-2)\n" +
		`policy:1:28: unknown profile "cautios": want standard, cautious or lattice`
	if err == nil || err.Error() != faults {
		t.Errorf("got %v, want %s", err, faults)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"good.yaml", "bad.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(`{"dependencies":{"a":{"max_retries":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if seen, _, err := Inspect("f", data); err == nil {
			if _, err := Marshal(seen); err != nil {
				t.Errorf("read, but not written: %v", err)
			}
		}
		file, err := Parse("f", data)
		if err == nil {
			// What was accepted can be built.
			for _, d := range file.Dependencies {
				opts := append(file.Options(), forbear.WithCallerDeadLetter())
				if _, err := forbear.New(d.Name, d.Policy, opts...); err != nil {
					t.Errorf("accepted, but not buildable: %v", err)
				}
			}
			return
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || len(e.Faults) == 0 {
			t.Fatalf("an error without faults: %v", err)
		}
		for _, fault := range e.Faults {
			if fault.Line < 1 || fault.Column < 1 || strings.Contains(fault.Message, "\n") {
				t.Errorf("fault %+v", fault)
			}
		}
	})
}
