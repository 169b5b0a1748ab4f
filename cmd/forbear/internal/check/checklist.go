package check

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/policyfile/check"
)

// answers answers the review questions. Anything but yes to all fails.
func (q *gate) answers(ctx context.Context, std *cli.Streams, sources []check.Source, unread bool) int {
	var metrics map[string]bool
	if q.metrics != "" {
		var err error
		if metrics, err = scrape(ctx, q.metrics); err != nil {
			std.Fail("check: scraping %s: %v", q.metrics, err)
			unread = true
		}
	}
	result := check.Run(sources, q.Options)
	answers := check.Checklist(sources, result, metrics, q.metrics)
	outputs := q.outputs
	if len(outputs) == 0 {
		outputs = []output{{"text", ""}}
	}
	for _, o := range outputs {
		write := func(w io.Writer) error { return check.WriteAnswers(w, answers) }
		switch o.format {
		case "text":
		case "json":
			write = func(w io.Writer) error {
				enc := json.NewEncoder(w)
				enc.SetIndent("", "  ")
				return enc.Encode(map[string]any{"schema": "forbear/checklist/v1", "files": q.files, "answers": answers})
			}
		default:
			return std.Fail("check: --checklist is written as text or json, not %s", o.format)
		}
		var err error
		if o.file == "" {
			err = write(std.Out)
		} else {
			err = toFile(o.file, write)
		}
		if err != nil {
			return std.Fail("check: %v", err)
		}
	}
	if unread || len(result.Unjudged) > 0 {
		return cli.ExitUsage
	}
	for _, a := range answers {
		if a.Verdict != check.Yes {
			return cli.ExitFound
		}
	}
	return cli.ExitOK
}

const (
	scrapeTime = 10 * time.Second
	maxScrape  = 16 << 20
)

// scrape returns the names of the metrics at url, in the text format of
// Prometheus or OpenMetrics.
func scrape(ctx context.Context, url string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	names := map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxScrape))
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
