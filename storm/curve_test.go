package storm

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

func TestCurve(t *testing.T) {
	calls := 0
	s := partial(withBreaker(breaker.Policy{OnBudget: breaker.BudgetOpens}), 0.3)
	s.Name = `a <b> & c`
	c, err := RunCurve(t.Context(), s, 10, Options{}, func(done, of int) { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	if calls != 10 || len(c.Points) != 10 {
		t.Fatalf("%d calls of progress, %d points", calls, len(c.Points))
	}
	for i, p := range c.Points {
		near(t, "share", p.Share, 0.1*float64(i+1), 1e-9)
		// The budget saves a fifth of the calls at most, and no fewer end well
		// than without any retry.
		if p.Unguarded < 1-p.Share-0.02 || p.Unguarded > min(1, (1-p.Share)*1.2)+0.02 {
			t.Errorf("%.0f %%: %.3f end well without breakers", 100*p.Share, p.Unguarded)
		}
	}
	if first, third := c.Points[0], c.Points[2]; first.Good < 0.99 || third.Good > 0.1 || third.Verdict != SelfInflicted {
		t.Errorf("at 10 %% %+v, at 30 %% %+v", first, third)
	}
	var text, table, picture bytes.Buffer
	for _, err := range []error{c.WriteText(&text), c.WriteCSV(&table), c.WriteSVG(&picture)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(text.String(), "self-inflicted") || !strings.Contains(text.String(), "░") {
		t.Errorf("the text shows no harm:\n%s", &text)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) != 11 || rows[3][4] != "self-inflicted" {
		t.Errorf("CSV: %v, %v", rows, err)
	}
	wellFormed(t, "curve", picture.Bytes())
}

func TestCurveRefusals(t *testing.T) {
	none := partial(forbear.Policy{}, 0.3)
	none.Faults = nil
	for name, tt := range map[string]struct {
		s      Scenario
		points int
	}{
		"no fault":      {none, 10},
		"a brownout":    {brownout(100, 1), 10},
		"no points":     {partial(forbear.Policy{}, 0.3), 0},
		"too many runs": {partial(forbear.Policy{}, 0.3), MaxCells + 1},
	} {
		if _, err := RunCurve(t.Context(), tt.s, tt.points, Options{}, nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
