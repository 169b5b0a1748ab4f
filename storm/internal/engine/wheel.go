package engine

import (
	"cmp"
	"math"
	"slices"
)

// event is something that happens at a time, in ns. gk packs a generation (upper
// 28 bits) and a kind (lower 4); idx is what it happens to. At 16 bytes, four share
// a cache line.
type event struct {
	at  int64
	idx uint32
	gk  uint32
}

func (e event) kind() uint32 { return e.gk & 15 }
func (e event) gen() uint32  { return e.gk >> 4 }

// The fine level covers 2,048 slots, the coarse one 4,096 times as many: at a
// slot for each event, eight million events fit before any is far.
const (
	fineSlots   = 1 << 11
	coarseSlots = 1 << 12
)

// wheel is a timing wheel in two levels with exact order: the slot under the
// hand is sorted when the hand reaches it. Events of one instant come out in
// the order in which they were put in. Slots keep their memory, so that a run in
// steady state allocates nothing. Times must not lie before the last one popped.
//
// A heap would take logarithmic time, and a run in trouble has a million pending
// timeouts, most of which never matter.
type wheel struct {
	// shift is log2 of the fine slot's width in ns. Slots are numbered from the
	// start of the run; the levels hold those of a number modulo their size.
	shift  uint
	fine   [][]event
	coarse [][]event
	// spare is the memory of coarse slots that have been read.
	spare [][]event
	// far is what lies beyond the coarse level.
	far []event
	// hand is the fine slot that is being read, and pos the next event in it.
	hand int64
	pos  int
	// fineEnd is the first slot beyond the fine level.
	fineEnd int64
	// n are all events, and occupied those in the fine level.
	n, occupied int
}

// newWheel returns an empty wheel for about the given number of events a second: a
// fine slot is as wide as the mean gap between two, from 1 ns to a second.
func newWheel(perSecond float64) *wheel {
	width := 1e9 / max(perSecond, 1)
	shift := uint(max(0, min(30, math.Round(math.Log2(width)))))
	const usual = 8 // a slot holds about one event
	fine := make([][]event, fineSlots)
	room := make([]event, fineSlots*usual)
	for i := range fine {
		fine[i] = room[i*usual : i*usual : (i+1)*usual]
	}
	return &wheel{
		shift:   shift,
		fine:    fine,
		coarse:  make([][]event, coarseSlots),
		fineEnd: fineSlots,
	}
}

// push adds e.
func (w *wheel) push(e event) {
	w.n++
	if e.at>>w.shift <= w.hand {
		w.insert(e)
		return
	}
	w.place(e)
}

// place puts e into a slot that the hand has not reached.
func (w *wheel) place(e event) {
	slot := e.at >> w.shift
	if slot < w.fineEnd {
		i := slot & (fineSlots - 1)
		w.fine[i] = append(w.fine[i], e)
		w.occupied++
		return
	}
	block := slot / fineSlots
	if block >= w.fineEnd/fineSlots+coarseSlots-1 {
		w.far = append(w.far, e)
		return
	}
	i := block & (coarseSlots - 1)
	if w.coarse[i] == nil && len(w.spare) > 0 {
		w.coarse[i], w.spare = w.spare[len(w.spare)-1], w.spare[:len(w.spare)-1]
	}
	w.coarse[i] = append(w.coarse[i], e)
}

// insert puts e into the slot under the hand, behind what is due no later. The slot
// is sorted already, and what has been popped stays before pos.
func (w *wheel) insert(e event) {
	i := w.hand & (fineSlots - 1)
	w.fine[i] = append(w.fine[i], e)
	sink(w.fine[i], w.pos)
	w.occupied++
}

// sink moves the last event of s forward, behind what is due no later, but not to
// before index first.
func sink(s []event, first int) {
	j := len(s) - 1
	e := s[j]
	for ; j > first && s[j-1].at > e.at; j-- {
		s[j] = s[j-1]
	}
	s[j] = e
}

// pop returns the earliest event; ok is false when there is none. Of several at one
// instant it is the first that was pushed.
func (w *wheel) pop() (e event, ok bool) {
	for {
		s := w.fine[w.hand&(fineSlots-1)]
		if w.pos < len(s) {
			e = s[w.pos]
			w.pos++
			w.n--
			w.occupied--
			return e, true
		}
		if w.n == 0 {
			return event{}, false
		}
		w.advance()
	}
}

// advance moves the hand to the next slot that may hold something. When the fine
// level is empty, the hand skips the rest of it.
func (w *wheel) advance() {
	w.fine[w.hand&(fineSlots-1)] = w.fine[w.hand&(fineSlots-1)][:0]
	w.pos = 0
	if w.occupied == 0 {
		w.hand = w.fineEnd - 1
	}
	w.hand++
	for w.hand == w.fineEnd {
		w.cascade()
		if w.occupied == 0 && w.n > 0 {
			w.hand = w.fineEnd
		}
	}
	order(w.fine[w.hand&(fineSlots-1)])
}

// cascade spreads the next coarse slot over the fine level. Once in a turn of the
// coarse level, what was too far for it may have come near.
func (w *wheel) cascade() {
	i := w.fineEnd / fineSlots & (coarseSlots - 1)
	w.fineEnd += fineSlots
	if events := w.coarse[i]; events != nil {
		for _, e := range events {
			w.place(e)
		}
		w.coarse[i] = nil
		w.spare = append(w.spare, events[:0])
	}
	if i == 0 {
		far := w.far
		w.far = nil
		for _, e := range far {
			w.place(e)
		}
	}
}

// order sorts a slot by time, keeping the order of equals. A slot holds about one
// event, so that an insertion sort is the quickest; a herd's slot is another matter.
func order(s []event) {
	if len(s) > 48 {
		slices.SortStableFunc(s, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		return
	}
	for i := 1; i < len(s); i++ {
		sink(s[:i+1], 0)
	}
}
