package idempotency

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// Backlog keeps the ends of runs that a store could not take, because it was down
// when they ended, and writes them when it is back. An outage of the store then
// makes no outcome unknown that this process knows: duplicates that arrive here
// get the response meanwhile, from [Backlog.Known].
//
// An end is written under the token of its claim, as any other. Where an
// operator, or another run, has decided meanwhile, it is dropped, and the log
// says so. Those of held records are written, too: a lease that ran out during
// the outage costs nothing but that duplicates in other processes get "outcome
// unknown" until the store has heard.
//
// What a Backlog keeps in memory ends with the process, unless [Backlog.Spool]
// gives it a file. [Backlog.Close] writes what it can.
//
// Only Store is required. Set the fields before the first use and do not copy a
// Backlog. It is safe for concurrent use; one serves all handlers and consumers
// of a store.
type Backlog struct {
	Store Store
	// MaxEntries bounds the ends that are kept. Default 10,000; negative: none is.
	MaxEntries int
	// MaxBytes bounds what they take in memory, in bytes. Default 64 MiB;
	// negative: none is kept. With a spool, responses beyond it are in the file alone.
	MaxBytes int64
	// Logger gets what an operator should see. Nil means slog.Default().
	Logger *slog.Logger

	mu       sync.Mutex
	kept     map[ID]*keptEnding
	queue    []*keptEnding // those of kept, and some that are no longer; the oldest first
	bytes    int64
	file     *spool        // nil: none, or another process has it
	spooling int           // ends on their way into the file
	flushing bool          // a goroutine writes what is kept
	down     bool          // the latest write has failed
	written  int           // since the backlog was last empty
	closed   chan struct{} // nil before the first use
	over     bool
}

// keptEnding is an end that waits for the store.
type keptEnding struct {
	end     Ending    // without the response's body where that is in the file alone
	since   time.Time // when the run ended
	renewed time.Time // when its lease was last tried
	at      place     // in the spool
	size    int64     // in memory, in bytes
	partial bool      // the body is in the file alone
	gone    bool      // no longer kept
}

// Stats is what a [Backlog] keeps.
type Stats struct {
	Waiting int   // ends that wait for the store
	Bytes   int64 // what they take in memory, in bytes
	Spooled int64 // the length of the spool's file, in bytes; 0 without one
}

// The errors of [Backlog.End] beside the store's.
var errBacklogFull = errors.New("and no room to keep it until the store is back")

// End writes the end of a run. It goes on after the end of ctx: that the client
// has left is what idempotency is for. What the store does not take, tried three
// times for at most 2 s each, is kept: deferred is then true and err nil. The error
// is [ErrFenced] when the claim has passed to another, and otherwise the store's,
// of an end that could not be kept either.
func (b *Backlog) End(ctx context.Context, e Ending) (deferred bool, err error) {
	ctx = context.WithoutCancel(ctx)
	if b.isDown() {
		err = b.write(ctx, &e)
	} else {
		err = wait.Persist(func() error { return b.write(ctx, &e) }, isFenced)
	}
	if err == nil || isFenced(err) {
		b.setDown(false)
		return false, err
	}
	if why := b.keep(e); why != nil {
		if isFenced(why) {
			return false, why
		}
		b.log(slog.LevelError, "idempotency: the end of a run could not be stored, its key stays taken",
			append(e.attrs(), slog.String("error", errors.Join(err, why).Error()))...)
		return false, err
	}
	return true, nil
}

// write tries the store once.
func (b *Backlog) write(ctx context.Context, e *Ending) error {
	limited := limit(ctx, endTimeout)
	defer limited.end()
	return e.write(limited, b.Store)
}

// isFenced reports whether a write came too late for its claim, which no further
// try can mend.
func isFenced(err error) bool { return errors.Is(err, ErrFenced) }

func (b *Backlog) isDown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.down
}

func (b *Backlog) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// Known returns what a claim comes to by an end that is kept here. ok is false when
// there is none, or one that lets the next claim run: the store must be asked.
func (b *Backlog) Known(c Claim) (v Verdict, ok bool) {
	b.mu.Lock()
	k := b.kept[c.ID]
	file := b.file
	b.mu.Unlock()
	if k == nil {
		return v, false
	}
	e, err := k.whole(file)
	if err != nil {
		return v, false // the file was emptied by now, or cannot be read
	}
	return e.verdict(c)
}

// Stats returns what is kept at the moment.
func (b *Backlog) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Waiting: len(b.kept), Bytes: b.bytes, Spooled: b.file.length()}
}

// keep takes e in. It goes to the file first: when keep returns it outlives the
// process, where there is a file and room in it.
func (b *Backlog) keep(e Ending) error {
	k := &keptEnding{end: e, since: time.Now(), size: e.size()}
	b.mu.Lock()
	err := b.admit(e)
	if err == nil && b.kept[e.Token.ID] == nil && len(b.kept) >= b.maxEntries() {
		err = errBacklogFull
	}
	if err != nil {
		b.mu.Unlock()
		return err
	}
	file := b.file
	b.spooling++
	b.mu.Unlock()
	at, spoolErr := file.add(k)

	b.mu.Lock()
	defer b.mu.Unlock()
	b.spooling--
	if spoolErr != nil {
		b.log(slog.LevelError, "idempotency: the spool takes nothing, the end of a run is in memory alone",
			append(e.attrs(), slog.String("error", spoolErr.Error()))...)
	}
	k.at = at
	if err := b.insert(k); err != nil {
		return err
	}
	b.down = true
	if len(b.kept) == 1 {
		b.log(slog.LevelWarn, "idempotency: the store is down, ends of runs are kept until it is back")
	}
	b.start()
	return nil
}

// admit says whether e may be kept. An end that is kept already for the same run
// stands when it is a response, as it would in the store. b.mu is held.
func (b *Backlog) admit(e Ending) error {
	switch old := b.kept[e.Token.ID]; {
	case b.over:
		return errors.New("and the backlog is closed")
	case old != nil && (old.end.Token.Fence > e.Token.Fence || old.end.Token == e.Token && old.end.Disposition == Keep):
		return ErrFenced
	}
	return nil
}

// insert makes k one of those that are kept: whole, or without its body where
// that is in the file and memory is used up. b.mu is held.
func (b *Backlog) insert(k *keptEnding) error {
	if err := b.admit(k.end); err != nil { // again: it was let go meanwhile
		return err
	}
	old := b.kept[k.end.Token.ID]
	if b.bytes+k.size > b.maxBytes() {
		if k.at.length == 0 {
			return errBacklogFull
		}
		k.end.Response.Body, k.partial = nil, true
		k.size = k.end.size()
	}
	if b.kept == nil {
		b.kept = map[ID]*keptEnding{}
	}
	b.kept[k.end.Token.ID] = k
	b.queue = append(b.queue, k)
	b.bytes += k.size
	if old != nil {
		b.remove(old) // last: the file must not be emptied of k
	}
	return nil
}

// remove lets k go, if it is still kept. With the last one the file is emptied.
// b.mu is held.
func (b *Backlog) remove(k *keptEnding) {
	if k.gone {
		return
	}
	k.gone = true
	b.bytes -= k.size
	if b.kept[k.end.Token.ID] == k {
		delete(b.kept, k.end.Token.ID)
	}
	if len(b.kept) > 0 || b.spooling > 0 {
		return
	}
	b.queue = nil
	if err := b.file.empty(); err != nil {
		b.log(slog.LevelError, "idempotency: the spool could not be emptied", slog.String("error", err.Error()))
	}
}

// whole returns the end with its body.
func (k *keptEnding) whole(file *spool) (Ending, error) {
	if !k.partial {
		return k.end, nil
	}
	return file.read(k.at)
}

// The defaults of the bounds.
const (
	defaultMaxEntries = 10_000
	defaultMaxBytes   = 64 << 20
)

func (b *Backlog) maxEntries() int { return max(cmp.Or(b.MaxEntries, defaultMaxEntries), 0) }

func (b *Backlog) maxBytes() int64 { return max(cmp.Or(b.MaxBytes, defaultMaxBytes), 0) }

// log logs about the backlog, not about a request.
func (b *Backlog) log(level slog.Level, text string, attrs ...slog.Attr) {
	cmp.Or(b.Logger, slog.Default()).LogAttrs(context.Background(), level, text, attrs...)
}
