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
// An end is written under the token of its claim. Where an operator, or another run,
// has decided meanwhile, the end is dropped, and the log says so. A lease that ran out
// during the outage does not prevent the write: until then, duplicates in other
// processes get "outcome unknown".
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
	// MaxBytes bounds what they take in memory, and in the spool's file, in bytes.
	// Default 64 MiB; negative: none is kept.
	MaxBytes int64
	// Logger gets what an operator should see. Nil means slog.Default().
	Logger *slog.Logger

	mu       sync.Mutex
	kept     map[ID]*keptEnding
	bytes    int64
	file     *spool        // nil: none, or another process has it
	flushing bool          // a goroutine writes what is kept
	written  int           // since the backlog was last empty
	closed   chan struct{} // nil before the first use; see closing
	over     bool
}

// keptEnding is an end that waits for the store.
type keptEnding struct {
	end     Ending
	size    int64     // in memory, in bytes
	since   time.Time // when the run ended
	renewed time.Time // when its lease was last renewed
	spooled bool      // it is in the file
}

// Stats is what a [Backlog] keeps.
type Stats struct {
	Waiting int   // ends that wait for the store
	Bytes   int64 // what they take in memory, in bytes
	Spooled int64 // the length of the spool's file, in bytes; 0 without one
}

var (
	errBacklogFull   = errors.New("and the backlog is full (Backlog.MaxBytes)")
	errBacklogClosed = errors.New("and the backlog is closed")
)

// End writes the end of a run. It goes on after the end of ctx: that the client
// has left is what idempotency is for. What the store does not take, tried three
// times for at most 2 s each, is kept: deferred is then true and err nil. While other
// ends wait for the store, it is tried once. The error
// is [ErrFenced] when the claim has passed to another, and otherwise the store's,
// of an end that could not be kept either.
func (b *Backlog) End(ctx context.Context, e Ending) (deferred bool, err error) {
	ctx = context.WithoutCancel(ctx)
	write := func() error { return b.write(ctx, &e) }
	if b.Stats().Waiting > 0 {
		err = write()
	} else {
		err = wait.Persist(write, isFenced)
	}
	if err == nil || isFenced(err) {
		return false, err
	}
	switch why := b.keep(&keptEnding{end: e, since: time.Now()}); {
	case why == nil:
		return true, nil
	case isFenced(why):
		return false, why
	default:
		b.log(slog.LevelError, "idempotency: the outcome of a run was not stored, and its key stays taken: resolve it with forbear keys settle",
			append(e.attrs(), slog.String("error", errors.Join(err, why).Error()))...)
		return false, err
	}
}

// write tries the store once.
func (b *Backlog) write(ctx context.Context, e *Ending) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	return e.write(ctx, b.Store)
}

// isFenced reports whether a write came too late for its claim, so that trying again
// is useless.
func isFenced(err error) bool { return errors.Is(err, ErrFenced) }

// Known returns what a claim comes to by an end that is kept here. ok is false when
// there is none, or one that lets the next claim run: the store must be asked.
func (b *Backlog) Known(c Claim) (v Verdict, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.kept[c.ID]
	if k == nil {
		return v, false
	}
	return k.end.verdict(c)
}

// Stats returns what is kept at the moment.
func (b *Backlog) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Waiting: len(b.kept), Bytes: b.bytes, Spooled: b.file.length()}
}

// keep takes k in, and begins to write what is kept. When keep returns, k outlives the
// process, where there is a file and room in it.
func (b *Backlog) keep(k *keptEnding) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.insert(k); err != nil {
		return err
	}
	b.save(k)
	if len(b.kept) == 1 {
		b.log(slog.LevelWarn, "idempotency: the store is down: outcomes are kept until it is back")
	}
	b.start()
	return nil
}

// insert makes k one of those that are kept, in the place of an earlier run's end. An end
// of the same run that is kept already stands when it is a response, as it would in the
// store. b.mu is held.
func (b *Backlog) insert(k *keptEnding) error {
	id := k.end.Token.ID
	old := b.kept[id]
	k.size = k.end.size()
	size, entries := b.bytes+k.size, len(b.kept)+1
	if old != nil {
		size, entries = size-old.size, entries-1
	}
	switch {
	case b.over:
		return errBacklogClosed
	case old != nil && (old.end.Token.Fence > k.end.Token.Fence || old.end.Token == k.end.Token && old.end.Disposition == Keep):
		return ErrFenced
	case size > max(cmp.Or(b.MaxBytes, defaultMaxBytes), 0), entries > max(cmp.Or(b.MaxEntries, defaultMaxEntries), 0):
		return errBacklogFull
	case b.kept == nil:
		b.kept = map[ID]*keptEnding{}
	}
	b.kept[id], b.bytes = k, size
	return nil
}

// The defaults of the bounds.
const (
	defaultMaxEntries = 10_000
	defaultMaxBytes   = 64 << 20
)

// save writes k to the file, if there is one. b.mu is held: a file that is synced for
// each end takes them one after the other.
func (b *Backlog) save(k *keptEnding) {
	if b.file == nil {
		return
	}
	err := b.file.add(k)
	if k.spooled = err == nil; err != nil {
		b.log(slog.LevelError, "idempotency: the spool cannot be written: an outcome is only in memory",
			append(k.end.attrs(), slog.String("error", err.Error()))...)
	}
}

// remove stops keeping k. With the last one the file is emptied. b.mu is held.
func (b *Backlog) remove(k *keptEnding) {
	if b.kept[k.end.Token.ID] != k {
		return
	}
	delete(b.kept, k.end.Token.ID)
	if b.bytes -= k.size; len(b.kept) > 0 {
		return
	}
	if err := b.file.empty(); err != nil {
		b.log(slog.LevelError, "idempotency: the spool could not be emptied", slog.String("error", err.Error()))
	}
}

// log logs about the backlog, not about a request.
func (b *Backlog) log(level slog.Level, text string, attrs ...slog.Attr) {
	cmp.Or(b.Logger, slog.Default()).LogAttrs(context.Background(), level, text, attrs...)
}
