package window

import "time"

// Slots fills counts with the events of each slot of the window that ends now,
// the newest first, and returns the number of the newest slot. It is safe for
// concurrent use.
func (w *Sharded) Slots(now time.Time, counts *[Slots]int64) (newest uint32) {
	*counts = [Slots]int64{}
	newest = slotOf(now, w.width)
	for i := range w.shards {
		for j := range w.shards[i].cells {
			v := w.shards[i].cells[j].Load()
			if a := age(newest, uint32(v>>32)); a < Slots {
				counts[a] += int64(uint32(v))
			}
		}
	}
	return newest
}

// Slots fills counts with the events of each slot of the window that ends now,
// the newest first, without the slot at the window's edge.
func (w *Exact) Slots(now time.Time, counts *[Slots]int64) {
	*counts = [Slots]int64{}
	newest := slotOf(now, w.width)
	for i := range w.cells {
		if a := age(newest, w.cells[i].slot); a < Slots {
			counts[a] += w.cells[i].n // a cell that was never used is one of slot 0, too
		}
	}
}
