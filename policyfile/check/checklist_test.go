package check

import (
	"bytes"
	"path/filepath"
	"testing"
)

const exemplary = `service: checkout
dependencies:
  payments:
    owner: checkout
    strict: true
    methods: [GET, POST]
    idempotency: generate
    per_attempt: 3s
    max_retries: 3
`

func scrape() map[string]bool {
	return map[string]bool{"retry_initial_requests_total": true, "retry_attempts_total": true, "retry_budget_utilization_ratio": true}
}

func TestChecklistHasSeventeenQuestions(t *testing.T) {
	s := []Source{parse(t, "policy.yaml", exemplary)}
	answers := Checklist(s, Run(s, Options{Now: today}), scrape(), "http://metrics")
	if len(answers) != 11+6 {
		t.Fatalf("got %d questions, want seventeen", len(answers))
	}
	seen := map[string]bool{}
	for _, a := range answers {
		if a.Verdict != Yes || len(a.Evidence) == 0 || seen[a.Question] {
			t.Errorf("%s: %v %v, want yes with evidence", a.ID, a.Verdict, a.Evidence)
		}
		seen[a.Question] = true
	}
	var b bytes.Buffer
	if err := WriteAnswers(&b, answers); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "checklist.txt"), b.String())
}

// Each question can be answered no, or not at all.
func TestChecklistSaysNo(t *testing.T) {
	with := func(line string) string { return exemplary + "    " + line + "\n" }
	for _, tt := range []struct {
		id, text string
		want     Verdict
	}{
		{"budgets-1", "dependencies: {payments: {strict: true}}\n", No},
		{"budgets-2", "dependencies: {payments: {owner: a, max_retries: 6}}\n", No},
		{"budgets-3", with("budget: none"), No},
		{"budgets-4", "dependencies: {payments: {owner: a, methods: [POST]}}\n", No},
		{"budgets-4", "dependencies: {payments: {owner: a}}\n", Unknown},
		{"budgets-5", with("classify: {http_404: retry}"), No},
		{"budgets-7", with("backoff: {jitter: fixed}"), No},
		{"budgets-8", exemplary + "observability: {metrics: false}\n", No},
		{"budgets-9", exemplary + "observability: {metrics: false}\n", No},
		{"budgets-10", with("budget: {ratio: 80%}"), Unknown},
		{"budgets-11", with("budget: {min_retries: 3}"), Unknown},
		{"config-1", with("classify: {http_422: retry}"), No},
		{"config-2", with("retry_unsent: true"), No},
		{"config-3", with("backoff: {base: 2s, cap: 2s}"), No},
		{"config-4", "dependencies: {payments: {owner: a, max_retries: 5}}\n", No},
		{"config-6", with("budget: {ratio: 25%}"), No},
	} {
		s := []Source{parse(t, "policy.yaml", tt.text)}
		for _, a := range Checklist(s, Run(s, Options{Now: today}), scrape(), "http://metrics") {
			if a.ID == tt.id && a.Verdict != tt.want {
				t.Errorf("%s: got %v (%v), want %v", tt.id, a.Verdict, a.Evidence, tt.want)
			}
		}
	}
}

func TestChecklistWithoutMetrics(t *testing.T) {
	s := []Source{parse(t, "policy.yaml", exemplary)}
	unknown := 0
	for _, a := range Checklist(s, Run(s, Options{Now: today}), nil, "") {
		if a.Verdict == Unknown {
			unknown++
		}
	}
	if unknown != 2 {
		t.Errorf("got %d unanswered questions, want those two that need metrics", unknown)
	}
}

func TestChecklistOfNothing(t *testing.T) {
	s := []Source{parse(t, "policy.yaml", "service: a\n")}
	for _, a := range Checklist(s, Run(s, Options{Now: today}), scrape(), "") {
		if a.Verdict != Unknown {
			t.Errorf("%s of an empty file: %v", a.ID, a.Verdict)
		}
	}
}
