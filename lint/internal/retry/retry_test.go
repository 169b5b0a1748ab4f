//forbear:plain rules have no goroutines; package lint runs them at once
package retry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/ruletest"
)

// TestPictures: what is found in each function of testdata.
func TestPictures(t *testing.T) {
	pkg := ruletest.Retries(t, "a", "far")["a"]
	for name, want := range map[string]string{
		"counted":   "a.send: the same every time, until a success, counted to 3",
		"atOnce":    "a.send: none, until a success, counted to 3",
		"growing":   "a.send: growing without randomness, until a success",
		"recursive": "a.send: the same every time, until a success, counted",
		"jumps":     "a.send: the same every time, until a success",
		"mutual":    "a.send: growing without randomness, until a success",
		"keep":      "",
		"consumes":  "a.send: the same every time, goes on",
		"polls":     "",
		"ticks":     "",
		"walks":     "",
		"gets":      "far.Get: the same every time, until a success, counted to 3",
		"posts":     "far.Post: the same every time, until a success, counted to 3",
	} {
		i := slices.IndexFunc(pkg.Retries, func(r *retry.Retry) bool { return r.Fn.Name() == name })
		got := ""
		if i >= 0 {
			got = picture(pkg.Retries[i])
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// picture says what is found, of what leaves the process.
func picture(r *retry.Retry) string {
	words := []string{r.OpNames() + ": " + r.Delay.Class.String(), "goes on"}
	if r.Pure {
		words[1] = "until a success"
	}
	switch {
	case r.Bound.Known:
		words = append(words, fmt.Sprint("counted to ", r.Bound.Limit))
	case r.Bound.Counter:
		words = append(words, "counted")
	}
	if r.Boundary != retry.Remote {
		words = append(words, "stays")
	}
	return strings.Join(words, ", ")
}

// TestFacts: a function of another package is known by its facts.
func TestFacts(t *testing.T) {
	pkg := ruletest.Retries(t, "a", "far")["a"]
	for _, r := range pkg.Retries {
		switch r.Fn.Name() {
		case "gets": // fails for each status but 404
			final := func(resp retry.Response) bool { return resp.Final }
			if got := strings.Join(pkg.Retried(r, false, final), " "); got != "400 401 403 409 422" {
				t.Errorf("gets: got the statuses %q", got)
			}
		case "posts":
			if w := pkg.Writes(r); w == nil || w.Method != "POST" {
				t.Errorf("posts: got %+v, want a POST", w)
			}
		}
	}
	handed := pkg.Handed()
	if len(handed) != 1 {
		t.Fatalf("got %d functions that are handed over, want one", len(handed))
	}
	if w := pkg.WritesHanded(handed[0]); w == nil || w.Method != "PATCH" || w.Open {
		t.Errorf("handsOver: got %+v, want a PATCH", w)
	}
}
