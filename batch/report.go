package batch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
)

// Report says what became of the items. Done, Failed, Skipped and Postponed
// add up to the items that were looked at.
type Report struct {
	Done    int
	Failed  int // permanently
	Skipped int // finished in an earlier run, or twice in this one
	// Postponed were begun, or about to be, and are for a later run: the moment
	// was wrong, not the item.
	Postponed int
	// Cut says that the run ended before the last item was looked at.
	Cut     bool
	Retries int
	Elapsed time.Duration
	// Reasons counts the failed and the postponed items by [forbear.Reason].
	Reasons map[string]int
	// Problems are the first 100 of them.
	Problems []Problem
}

// Problem is an item that was not done.
type Problem struct {
	ID        string // "" without Options.ID
	Reason    forbear.Reason
	ErrorType string
	Attempts  int
	Postponed bool // else it has failed
}

// maxProblems bounds the report of a run in which everything fails.
const maxProblems = 100

// String returns one line for people.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d done, %d failed, %d postponed, %d skipped", r.Done, r.Failed, r.Postponed, r.Skipped)
	if len(r.Reasons) > 0 {
		var list []string
		for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
			list = append(list, fmt.Sprintf("%s %d", reason, r.Reasons[reason]))
		}
		b.WriteString(" (" + strings.Join(list, ", ") + ")")
	}
	if r.Cut {
		b.WriteString(", the rest not looked at")
	}
	fmt.Fprintf(&b, "; %d retries in %v", r.Retries, r.Elapsed.Round(time.Millisecond))
	return b.String()
}

// tally counts for the report, from several goroutines. reported is when
// progress was last reported.
type tally struct {
	mu       sync.Mutex
	report   Report
	began    time.Time
	reported time.Time
	progress func(Report)
}

// progressEvery is the least time between two reports of progress.
const progressEvery = time.Second

// newTally counts the first report's interval from now: a run that is over
// at once reports once.
func newTally(progress func(Report)) *tally {
	now := time.Now()
	return &tally{report: Report{Reasons: map[string]int{}}, began: now, reported: now, progress: progress}
}

// count changes the report, and reports progress when it is time. The lock
// is held meanwhile, so that calls of progress do not overlap.
func (t *tally) count(change func(r *Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.report)
	if t.progress != nil && time.Since(t.reported) >= progressEvery {
		t.reported = time.Now()
		t.progress(t.snapshot())
	}
}

// snapshot is a copy that shares nothing with the report that goes on; t.mu
// is held.
func (t *tally) snapshot() Report {
	r := t.report
	r.Elapsed = time.Since(t.began)
	r.Reasons, r.Problems = maps.Clone(r.Reasons), slices.Clone(r.Problems)
	return r
}

// finish returns the final report, and reports it as the last progress.
func (t *tally) finish() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.snapshot()
	if t.progress != nil {
		t.progress(r)
	}
	return r
}

// problem counts an item that was not done, and keeps the first ones by
// name.
func (t *tally) problem(p Problem) {
	t.count(func(r *Report) {
		if p.Postponed {
			r.Postponed++
		} else {
			r.Failed++
		}
		r.Retries += max(p.Attempts-1, 0)
		r.Reasons[p.Reason.String()]++
		if len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, p)
		}
	})
}
