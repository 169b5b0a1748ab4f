package pace

import "time"

const (
	slot      = 50 * time.Millisecond
	slots     = 128 // a ring that holds longest and its edge
	shortest  = time.Second
	longest   = 4 * time.Second
	enoughFor = 20 // accepted sends say a rate to a quarter
)

// meter counts the accepted sends of the latest seconds. It is not safe for
// concurrent use.
type meter struct {
	since  time.Duration // nothing before counts
	newest int64         // number of the newest slot
	counts [slots]int32
}

// add counts one accepted send.
func (m *meter) add(now time.Duration) {
	m.turn(now)
	m.counts[m.newest&(slots-1)]++
}

// turn empties the slots that have begun since the last call.
func (m *meter) turn(now time.Duration) {
	n := slotOf(now)
	for range min(n-m.newest, slots) {
		m.newest++
		m.counts[m.newest&(slots-1)] = 0
	}
	m.newest = max(m.newest, n)
}

// slotOf returns the number of the slot that a time falls into. A simulation's clock may
// stand before the epoch.
func slotOf(now time.Duration) int64 {
	if now < 0 {
		now -= slot - 1
	}
	return int64(now / slot)
}

// rate returns how many sends a second have been accepted lately: in the last
// second, since many limits are per second and may show anything in less; in up to
// four where there were too few to say.
func (m *meter) rate(now time.Duration) float64 {
	m.turn(now)
	count, from := 0, now
	for back := range int64(slots - 1) {
		n := m.newest - back
		begins := time.Duration(n) * slot
		if begins+slot <= m.since {
			break
		}
		if span := now - from; span >= longest || span >= shortest && count >= enoughFor {
			break
		}
		count += int(m.counts[n&(slots-1)])
		from = max(begins, m.since)
	}
	return float64(count) / max(now-from, slot/5).Seconds()
}
