package exact

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// Rivals are so many clients that all want to write one row, at its version.
type Rivals struct {
	Clients       int
	FirstExponent int // of the first wait
	// Each message takes |normal(NetMean, NetSpread)|.
	NetMean, NetSpread time.Duration
	Seed               uint64
}

// contender is one of the rivals: the version that it has read, and how often it
// has lost.
type contender struct {
	version  int
	attempt  int
	prevWait time.Duration
}

// Contend plays a contention out and returns the time until the last client is
// done, and the writes that it took. A write wins when the row still has the version
// that was read.
func Contend(p *model.Plan, c Rivals) (took time.Duration, writes int, err error) {
	// What a client does next, and what it has learned.
	const (
		read = iota
		readDone
		write
		won
		lost
	)
	rng := rand.New(rand.NewPCG(c.Seed, 5))
	b := p.Caller(rng.Float64, 1, 1)
	net := func() int64 {
		return int64(math.Abs(float64(c.NetMean) + float64(c.NetSpread)*rng.NormFloat64()))
	}
	all := make([]contender, c.Clients)
	w := newWheel(float64(c.Clients) * 100)
	for i := range all {
		w.push(event{at: net(), idx: uint32(i), gk: read})
	}
	// Every step of a client is one message, which the next event waits for.
	epoch, version := model.StartOfTime(), 0
	for {
		e, ok := w.pop()
		if !ok {
			return took, writes, nil
		}
		me := &all[e.idx]
		next := event{at: e.at + net(), idx: e.idx}
		switch e.kind() {
		case read:
			me.version = version
			next.gk = readDone
		case readDone:
			next.gk = write
		case write:
			writes++
			if next.gk = lost; me.version == version {
				version++
				next.gk = won
			}
		case won:
			took = time.Duration(e.at)
			continue
		case lost:
			me.attempt++
			n := me.attempt + c.FirstExponent
			now := epoch.Add(time.Duration(e.at))
			s := forbear.State{Attempt: n, Start: now, PrevWait: me.prevWait}
			d := b.Retryer.Next(&s, model.FailedResponse, now)
			me.prevWait = p.Wait(&d, n, rng.Float64)
			next.at += int64(me.prevWait)
			next.gk = read
		}
		w.push(next)
	}
}
