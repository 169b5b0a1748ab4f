package gateway

import "time"

// minutes is how many values an [Hour] has; the last is that of the minute under way.
const minutes = 60

// readings are the counts of a dependency that have a past: calls, retries, failed, saved
// and faults.
type readings [5]int64

// past is what a dependency did lately, by the minute. Its lock is that of the tally. The
// ring takes 1.25 KB, and is there for those alone that had something to do within an hour.
type past struct {
	before readings // at the beginning of the minute under way
	ring   *ring
}

type ring struct {
	last int64 // the minute of the newest values
	of   [minutes][len(readings{})]uint32
}

// sample moves every tally on to the minute of now. Serve calls it by a ticker, and every
// reader does; without either the calls of several minutes count as those of one. It costs
// some 100 ns a dependency, once a minute.
func (s *Stats) sample(now time.Time) (minute int64) {
	// By the monotonic clock: one that is set back would stop the hour.
	minute = int64((now.Sub(s.since) + s.since.Sub(s.since.Truncate(time.Minute))) / time.Minute)
	s.sampling.Lock()
	defer s.sampling.Unlock()
	if minute <= s.minute {
		return s.minute
	}
	for _, t := range s.counts.all() {
		t.mu.Lock()
		t.past.move(t.readings(), s.minute, minute)
		t.mu.Unlock()
		for window := s.minute / 5; window < min(minute/5, s.minute/5+2); window++ {
			t.took.turn()
		}
	}
	s.minute = minute
	return minute
}

// Sample is to be called about every ten seconds, so that the hour is shown by the minute
// also when no one looks at it for a while.
func (s *Stats) Sample(now time.Time) { s.sample(now) }

func (t *tally) readings() readings {
	return readings{t.initial.Load(), t.retries.Load(), t.failed.Load(), t.saved.Load(), t.faults.Load()}
}

// move counts what was done since the beginning of minute from as done in it, and begins
// minute to.
func (p *past) move(now readings, from, to int64) {
	if now != p.before {
		if p.ring == nil {
			p.ring = &ring{last: from}
		}
		for m := max(p.ring.last+1, from-minutes+1); m <= from; m++ {
			clear(p.ring.of[m%minutes][:])
		}
		for i := range now {
			p.ring.of[from%minutes][i] = uint32(now[i] - p.before[i])
		}
		p.ring.last, p.before = from, now
	}
	if p.ring != nil && to-p.ring.last >= minutes {
		p.ring = nil
	}
}

// at returns what was done in a minute; that of the minute under way is apart.
func (r *ring) at(minute int64) (of [len(readings{})]uint32) {
	if r == nil || minute < 0 || minute > r.last || minute <= r.last-minutes {
		return of
	}
	return r.of[minute%minutes]
}

// hour returns the hour that ends with the given minute, or nil when nothing was done.
func (t *tally) hour(minute int64, now time.Time) *Hour {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.readings()
	if t.past.ring == nil && current == t.past.before {
		return nil
	}
	var of [len(current)][]uint32
	for i := range of {
		of[i] = make([]uint32, 0, minutes)
	}
	for m := range int64(minutes - 1) {
		for i, n := range t.past.ring.at(minute - minutes + 1 + m) {
			of[i] = append(of[i], n)
		}
	}
	for i := range of {
		of[i] = append(of[i], uint32(current[i]-t.past.before[i]))
	}
	from := now.Truncate(time.Minute).Add(-(minutes - 1) * time.Minute).UTC()
	return &Hour{From: from, Step: Duration(time.Minute), Calls: of[0], Retries: of[1], Failed: of[2], Saved: of[3]}
}

// recent returns what was done in the five minutes before the given one, and in that.
func (t *tally) recent(minute int64) (sum readings) {
	for i, n := range t.readings() {
		sum[i] = n - t.past.before[i]
	}
	for m := minute - 5; m < minute && t.past.ring != nil; m++ {
		for i, n := range t.past.ring.at(m) {
			sum[i] += int64(n)
		}
	}
	return sum
}
