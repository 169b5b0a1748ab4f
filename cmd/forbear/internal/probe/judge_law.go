package probe

import (
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/law"
)

// judgeLaw tells the law of the waits. Equal jitter and fixed intervals are forbidden, as is
// what has no jitter.
func judgeLaw(k *known, runs []run) Verdict {
	if !k.sentAgain {
		return notJudged("nothing is sent again")
	}
	var s law.Sample
	for i := range runs {
		for n, w := range runs[i].waits() {
			if n == len(s) {
				s = append(s, nil)
			}
			s[n] = append(s[n], w)
		}
	}
	k.waits = s
	if k.law, k.lawFound = law.Find(s); !k.lawFound {
		return notJudged("too few waits: %d calls were sent again", len(s))
	}
	f := k.law
	by := fmt.Sprintf("%s; likelihood 10^%.0f times that of %s, %d waits of %d calls, power %.0f %%", ceilingsOf(f), f.Odds, f.Next.Name, f.Waits, f.Calls, 100*f.Power)
	switch {
	case f.Law == law.Immediate:
		return fails("it does not wait: %s", by)
	case f.Odds < 1 && f.ToFull >= 1:
		return fails("%s or %s: %s", f.Law.Name, f.Next.Name, by)
	case f.Odds < 1:
		return notJudged("%s or %s: %s", f.Law.Name, f.Next.Name, by)
	case f.Law == law.Full && f.Growth.Factor == 1 && len(f.Ceilings) > 1:
		return fails("full jitter that does not grow: %s", by)
	case f.Law == law.Full:
		return holds("full jitter: %s", by)
	case f.Law == law.None && f.Growth.Factor == 1 && len(f.Ceilings) > 1:
		return fails("a fixed interval: %s", by)
	}
	return fails("%s: %s", f.Law, by)
}

// ceilingsOf lists the ceilings of the waits, and how they grow.
func ceilingsOf(f law.Found) string {
	g, list := f.Growth, []string{}
	for _, c := range f.Ceilings {
		list = append(list, short(c.Round(time.Millisecond)))
	}
	grows := ""
	if g.Factor > 1 && len(f.Ceilings) > 1 {
		base, high := short(g.Low.Round(time.Millisecond)), short(g.High.Round(time.Millisecond))
		if high != base {
			base += " to " + high
		}
		grows = fmt.Sprintf(" (base %s, times %g", base, g.Factor)
		if g.Cap > 0 {
			grows += ", cap " + short(g.Cap.Round(10*time.Millisecond))
		}
		grows += ")"
	}
	kind := "up to "
	if f.Law == law.None || f.Law == law.Immediate {
		kind = ""
	}
	return kind + strings.Join(list, ", ") + grows
}
