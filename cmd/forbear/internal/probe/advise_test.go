package probe

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// unkeyed is a report of curl that does not keep to R-6.
func unkeyed() *Report {
	return &Report{
		Command: []string{"curl", "{url}"}, Agent: "curl/7.88.1", classes: map[string]string{},
		Cases: []Finding{
			{ID: "R-1/law", Rule: "R-1", Verdict: holds("full jitter")},
			{ID: "R-6/503/POST", Rule: "R-6", Verdict: fails("sent again without an idempotency key")},
			{ID: "R-6/reset/POST", Rule: "R-6", Verdict: fails("sent again without an idempotency key")},
		},
	}
}

// TestAdviceIsForWhatFails: a report has the advice for the rules that do not hold, once
// each, and JUnit's has none.
func TestAdviceIsForWhatFails(t *testing.T) {
	for format, want := range map[string]int{"text": 1, "json": 1, "junit": 0, "policy": 0} {
		var b strings.Builder
		if err := unkeyed().write(&b, format, ""); err != nil {
			t.Fatal(err)
		}
		if out := b.String(); strings.Count(out, "-H ") != want || strings.Contains(out, "full jitter: `") {
			t.Errorf("%s: got %s", format, out)
		}
	}
	r := unkeyed()
	if err := r.conclude(); err != nil {
		t.Fatal(err)
	}
	if len(r.Advice) != 1 || r.Advice[0].Rule != "R-6" || r.AdviceClient != "curl" {
		t.Errorf("got %+v", r)
	}
	if page := r.adviseHTML(); !strings.Contains(page, "<code>") || strings.Contains(page, "`") || !strings.Contains(page, "https://curl.se") {
		t.Errorf("got %s", page)
	}
}

// TestNoAdvice: a client that no one knows gets none, and neither does one that holds.
func TestNoAdvice(t *testing.T) {
	unknown, right := unkeyed(), unkeyed()
	unknown.Agent = "unheard-of/1.0"
	right.Cases = right.Cases[:1]
	for _, r := range []*Report{unknown, right} {
		var text, page, doc strings.Builder
		r.text(&text)
		if err := r.conclude(); err != nil {
			t.Fatal(err)
		}
		if err := r.html(&page); err != nil {
			t.Fatal(err)
		}
		if err := r.write(&doc, "json", ""); err != nil || !json.Valid([]byte(doc.String())) {
			t.Error(err)
		}
		if strings.Contains(text.String()+page.String()+doc.String(), "What to change") || strings.Contains(doc.String(), "advice") || r.Policy == "" {
			t.Errorf("got %s", text.String())
		}
	}
}

// TestBrokenRules: the tenth rule comes after the second.
func TestBrokenRules(t *testing.T) {
	r := &Report{Cases: []Finding{{Rule: "R-10", Verdict: fails("")}, {Rule: "R-2", Verdict: fails("")}, {Rule: "R-3", Verdict: holds("")}}}
	if got := r.broken(); !slices.Equal(got, []string{"R-2", "R-10"}) {
		t.Errorf("got %q", got)
	}
}
