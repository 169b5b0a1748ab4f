package gateway

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
)

// The ranks of [Trouble], in the order in which someone on call looks at them: what may be an
// attack, what refuses calls now, what waits for a person, what withholds retries, what
// fails, what is only costly, and last an endpoint that was disabled more than an hour ago. A breaker goes between open and half-open by itself, so
// that their ranks are neighbours and the row stays where it is.
const (
	well = iota
	longDisabled
	isPaced
	heldClosed
	retriesALot
	failing
	unhealthy
	overBudget
	deliveryHeld
	halfOpen // or open, and the next call is a probe
	isOpen
	certificateRefused
)

const (
	// certificateMemory is how long a refused certificate is trouble.
	certificateMemory = 10 * time.Minute
	// Failed calls are trouble from 1 % on, retries from 5 % and ten in the last minutes.
	failingShare, retryingShare, fewRetries = 100, 20, 10
)

// illness is what is wrong with a dependency, before it is put into words.
type illness struct {
	rank        int
	recent      readings
	durable     bool
	streak      int64 // of failed attempts, of durable work
	certificate string
}

// byTrouble sorts dependencies that come by name. Among equals those go first that had
// clearly more failures and retries lately.
func (l *look) byTrouble(rows []*tally) []*tally {
	type place struct{ rank, weight int }
	ill, good, places := []*tally{}, make([]*tally, 0, len(rows)), map[*tally]place{}
	for _, t := range rows {
		if i := l.ill(t); i.rank > well {
			ill = append(ill, t)
			// Doublings: a row that overtakes another with each call would be hard to click.
			places[t] = place{i.rank, bits.Len64(uint64(16*i.recent[4] + i.recent[1]))}
		} else {
			good = append(good, t)
		}
	}
	slices.SortStableFunc(ill, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(places[b].rank, places[a].rank), cmp.Compare(places[b].weight, places[a].weight))
	})
	return append(ill, good...)
}

// ill says what is wrong with a dependency. Thousands are asked for each page: it reads no
// more than it must and allocates nothing.
func (l *look) ill(t *tally) (i illness) {
	t.mu.Lock()
	i.recent = t.recent(l.minute)
	refused, lately := t.events.certificate, t.past.ring != nil || t.readings() != t.past.before
	if t.good() == t.goods {
		i.streak = t.streak
	}
	t.mu.Unlock()
	calls, retries, faults := i.recent[0], i.recent[1], i.recent[4]
	r := t.retryer.Load()
	busy := r != nil && calls+retries > 0
	if r != nil && r.Policy().Kind.Durable() {
		i.durable, calls = true, calls+retries // faults are those of attempts
	}
	var b *breaker.Breaker
	if r != nil {
		b = r.Breaker()
	}
	if b != nil {
		i.rank = rankOf(b, l.now)
	}
	switch {
	case refused != nil && l.now.Sub(refused.At) < certificateMemory:
		i.rank, i.certificate = certificateRefused, refused.Why
	case l.held[t.name] && l.deliveries(t.name).isDisabled(): // whatever its breaker was left at
		if i.rank = longDisabled; lately {
			i.rank = deliveryHeld
		}
	case i.rank >= halfOpen:
	case l.held[t.name]:
		i.rank = deliveryHeld
	case b != nil && b.BudgetSpent(l.now), busy && retries > 0 && isSpent(r, l.now):
		i.rank = overBudget
	case busy && isSick(r, l.now):
		i.rank = unhealthy
	case faults > 0 && faults*failingShare >= calls, i.streak > 1:
		i.rank = failing
	case retries >= fewRetries && retries*retryingShare >= calls:
		i.rank = retriesALot
	case i.rank == well && busy && edge.Pacer(r) != nil && edge.Pacer(r).Active():
		i.rank = isPaced
	}
	return i
}

// rankOf returns the rank of what a breaker alone says.
func rankOf(b *breaker.Breaker, now time.Time) int {
	switch b.State() {
	case breaker.HalfOpen:
		return halfOpen
	case breaker.Open:
		if !b.Forced() && b.Wait(now) == 0 {
			return halfOpen
		}
		return isOpen
	}
	if b.Forced() {
		return heldClosed
	}
	return well
}

func isSpent(r *forbear.Retryer, now time.Time) bool {
	level := r.Level(now)
	return level.Used > 0 && level.Used >= level.Allowed
}

func isSick(r *forbear.Retryer, now time.Time) bool {
	h, ok := edge.Health(r, now)
	return ok && !h.Healthy
}

// wordsOf are those of the ranks that need no figures.
var wordsOf = [...]string{
	certificateRefused: "certificate refused", isOpen: "breaker open", halfOpen: "breaker half-open", deliveryHeld: "deliveries held",
	overBudget: "retry budget exhausted", unhealthy: "health gate closed", heldClosed: "breaker held closed by hand",
	isPaced: "the dependency limits its callers",
}

// why puts the illness of d into words.
func (i illness) why(d *DependencyStatus) string {
	switch {
	case i.certificate != "":
		return wordsOf[i.rank] + ": " + i.certificate
	case i.rank == isOpen && d.Breaker != nil && d.Breaker.Forced:
		return "breaker held open by hand"
	case i.rank == halfOpen && d.Breaker != nil && d.Breaker.State == breaker.Open.String():
		return "breaker open: the next call is a probe"
	case (i.rank == deliveryHeld || i.rank == longDisabled) && d.Delivery.isDisabled():
		return "endpoint disabled: " + d.Delivery.Held
	case i.rank == deliveryHeld && d.Delivery != nil && d.Delivery.Hold != "":
		return wordsOf[i.rank] + ": " + d.Delivery.Hold
	case i.rank == failing && i.streak > 1:
		return fmt.Sprintf("the last %d attempts failed", i.streak)
	case i.rank == failing && i.durable:
		return fmt.Sprintf("%d of %d attempts failed in 5 minutes", i.recent[4], i.recent[0]+i.recent[1])
	case i.rank == failing:
		return fmt.Sprintf("%d of %d calls failed in 5 minutes", i.recent[4], i.recent[0])
	case i.rank == retriesALot:
		return fmt.Sprintf("%d retries of %d calls in 5 minutes", i.recent[1], i.recent[0])
	}
	return wordsOf[i.rank]
}
