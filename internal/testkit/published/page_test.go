//forbear:plain calls go one after the other; each edge is raced in its own package

package published

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/roottest"
)

// tally counts what the data of one source say and where forbear does something else.
type tally struct {
	checks, agree int
	rules         []string // in the order of their first difference
	differences   map[string]int
}

// add takes one check, with what it got. rule is why it is expected to differ, "" when it
// is to agree.
func (c *tally) add(t *testing.T, name string, agrees bool, rule string, got any) {
	t.Helper()
	c.checks++
	switch {
	case agrees != (rule == ""):
		t.Errorf("%s: agrees is %v, the expected difference is %q; got %+v", name, agrees, rule, got)
	case agrees:
		c.agree++
	default:
		if c.differences == nil {
			c.differences = map[string]int{}
		}
		if c.differences[rule] == 0 {
			c.rules = append(c.rules, rule)
		}
		c.differences[rule]++
	}
}

// row is the tally as a row of the page's table.
func (c *tally) row(source string) string {
	var parts []string
	for _, rule := range c.rules {
		parts = append(parts, fmt.Sprintf("%d %s", c.differences[rule], rule))
	}
	return fmt.Sprintf("| %s | %d | %d | %s |", source, c.checks, c.agree, strings.Join(parts, "; "))
}

// TestPublished runs all of the data, and holds the figures of the page to what it counts.
func TestPublished(t *testing.T) {
	const page = "docs/published-tests.md"
	text, err := os.ReadFile(roottest.Path(page))
	if err != nil {
		t.Fatal(err)
	}
	sources := []source{
		{"AWS standard mode", awsStandard},
		{"RFC 9110, `Retry-After`", retryAfter},
		{"`RateLimit` draft", rateLimit},
		{"Standard Webhooks, deliveries", standardWebhooks},
	}
	for i := range modes {
		sources = append(sources, source{modes[i].name, modes[i].count})
	}
	for _, s := range sources {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if row := s.count(t).row(s.name); !t.Failed() && !strings.Contains(string(text), row+"\n") {
				t.Errorf("%s has another row; write:\n%s", page, row)
			}
		})
	}
}

type source struct {
	name  string
	count func(*testing.T) *tally
}
