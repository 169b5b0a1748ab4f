package check

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/internal/resend"
	"github.com/forbear-go/forbear/policyfile/check"
)

// review evaluates the review questions, with evidence. Anything but yes to
// all of them fails, "cannot judge" included: without --metrics the
// questions about metrics have no evidence, and a review that skipped them
// is no review.
func (q *gate) review(ctx context.Context, read *check.Reading) (int, error) {
	unread := read.Fatal()
	var metrics map[string]bool
	// Scraped once, before the judging: all questions go by the same page,
	// and a service that cannot be reached is known early.
	if q.metrics != "" {
		var err error
		if metrics, err = scrape(ctx, q.metrics); err != nil {
			// The other questions are still evaluated; the exit code says
			// that something is missing.
			q.std.Fail("check: scraping %s: %v", q.metrics, err)
			unread = true
		}
	}
	result := check.Run(read.Sources, q.Options)
	answers := check.Checklist(read.Sources, result, metrics, q.metrics)
	err := report.WriteAll(q.outputs, q.std.Out, func(w io.Writer, o report.Output) error {
		switch o.Format {
		case "text":
			if err := check.WriteAnswers(w, answers); err != nil {
				return err
			}
			return q.judged(w, read, result)
		case "json":
			return cli.WriteJSON(w, map[string]any{"schema": "forbear/checklist/v1", "files": read.Names, "answers": answers, "problems": read.Problems})
		}
		// SARIF and JUnit are formats of findings, which questions are not.
		return fmt.Errorf("--checklist supports -o text or json, not %s", o.Format)
	})
	if err != nil || unread || len(result.Unjudged) > 0 {
		return cli.ExitUsage, err
	}
	// Every question counts the same: none of them may be left at no.
	for _, a := range answers {
		if a.Verdict != check.Yes {
			return cli.ExitFound, nil
		}
	}
	return cli.ExitOK, nil
}

// What a scrape may take and hold. A large service exposes a few megabytes.
const (
	scrapeTime = 10 * time.Second
	maxScrape  = 16 << 20
)

// scrape returns the names of the metrics at url, in the text format of
// Prometheus or OpenMetrics. The names are the evidence: a metric that a
// service has never emitted is not on its page. Values are not read, since
// they say nothing about a review.
func scrape(ctx context.Context, url string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: resend.Once(nil)}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	// An error page has no metrics, and would turn every question into a
	// no.
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	names := map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxScrape))
	// One line may be long, where a metric has many labels.
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if end := strings.IndexAny(line, "{ \t"); end > 0 {
			names[line[:end]] = true
		}
	}
	return names, lines.Err()
}
