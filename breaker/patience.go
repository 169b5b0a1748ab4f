package breaker

import "time"

// patience keeps a breaker closed through trouble that passes by itself.
//
// An opening refuses everything for five seconds at least (the floor of
// INTG-STD-033), which is more than two seconds of failures do; and no count of
// calls distinguishes the first second of such a burst from that of an outage. What came
// of the last time does: a breaker whose first probes all succeeded might as well
// have stayed closed. So might one whose second did, as long after the first: a
// dependency that is up and down by turns meets the first while it is down again.
// For ten minutes after that, trouble has to last for as long as it would stay open;
// when it passes sooner, for ten minutes more.
//
// So has what comes from a limit. A response of 429 is a failure, and beside
// successes it shows a dependency at work: the end of each second at a limit of
// requests a second is not an outage.
type patience struct {
	least  time.Duration // how long a breaker is open at first
	since  time.Time     // when the trouble under way began to show; zero for none
	passed time.Time     // when trouble was last over that soon
}

// patienceMemory is for how long trouble that passed by itself is remembered.
const patienceMemory = 10 * time.Minute

// spent reports whether trouble that shows now is to open the breaker. limited
// says that it comes from a limit.
func (p *patience) spent(limited bool, now time.Time) bool {
	if p.since.IsZero() {
		p.since = now
	}
	return !limited && !p.remembers(now) || now.Sub(p.since) >= p.least
}

// over records that the trouble under way no longer shows.
func (p *patience) over(now time.Time) {
	if !p.since.IsZero() && p.remembers(now) {
		p.passed = now
	}
	p.since = time.Time{}
}

// recovered records that a breaker has closed, which had last opened at the given
// time.
func (p *patience) recovered(opened, now time.Time) {
	if p.passed = (time.Time{}); now.Sub(opened) < 2*p.least {
		p.passed = now
	}
}

func (p *patience) remembers(now time.Time) bool {
	return !p.passed.IsZero() && now.Sub(p.passed) <= patienceMemory
}
