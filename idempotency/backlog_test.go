package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// downable is a store that can be down as a whole.
type downable struct {
	*memstore.Idempotency
	down   atomic.Bool
	refuse atomic.Pointer[idempotency.ID] // whose end it never takes
	beats  atomic.Int64                   // renewals of that one
}

func newDownable() *downable { return &downable{Idempotency: &memstore.Idempotency{}} }

func (d *downable) fails(id idempotency.ID) error {
	if r := d.refuse.Load(); d.down.Load() || r != nil && *r == id {
		return errDown
	}
	return nil
}

func (d *downable) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	if d.down.Load() {
		return idempotency.Verdict{}, errDown
	}
	return d.Idempotency.Claim(ctx, c)
}

func (d *downable) Get(ctx context.Context, id idempotency.ID) (idempotency.Record, error) {
	if d.down.Load() {
		return idempotency.Record{}, errDown
	}
	return d.Idempotency.Get(ctx, id)
}

func (d *downable) Renew(ctx context.Context, t idempotency.Token, lease time.Duration) error {
	if d.down.Load() {
		return errDown
	}
	if r := d.refuse.Load(); r != nil && *r == t.ID {
		d.beats.Add(1)
	}
	return d.Idempotency.Renew(ctx, t, lease)
}

func (d *downable) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, r time.Duration) error {
	if err := d.fails(t.ID); err != nil {
		return err
	}
	return d.Idempotency.Complete(ctx, t, a, r)
}

func (d *downable) Release(ctx context.Context, t idempotency.Token) error {
	if err := d.fails(t.ID); err != nil {
		return err
	}
	return d.Idempotency.Release(ctx, t)
}

func (d *downable) Hold(ctx context.Context, t idempotency.Token, why string) error {
	if err := d.fails(t.ID); err != nil {
		return err
	}
	return d.Idempotency.Hold(ctx, t, why)
}

// begun claims a key and returns the end of its run, kept with a response.
func begun(t *testing.T, s idempotency.Store, key string) (idempotency.Claim, idempotency.Ending) {
	t.Helper()
	c := idempotency.Claim{
		ID: idempotency.ID{Scope: "all", Key: idempotency.Digest(key)}, Fingerprint: "f", Operation: "POST /pay", Owner: "owner of " + key,
		Lease: 30 * time.Second, Retention: 48 * time.Hour,
	}
	v, err := s.Claim(t.Context(), c)
	if err != nil || v.Outcome != idempotency.Acquired {
		t.Fatalf("claim: %+v, %v", v, err)
	}
	e := c.Ends(v.Record, idempotency.Keep)
	e.Response = idempotency.Response{Status: 201, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("secret body of " + key)}
	return c, e
}

// putOff ends a run while the store is down.
func putOff(t *testing.T, b *idempotency.Backlog, e idempotency.Ending) {
	t.Helper()
	if deferred, err := b.End(t.Context(), e); !deferred || err != nil {
		t.Fatalf("deferred %v, %v; want it to be kept", deferred, err)
	}
}

func wantStored(t *testing.T, s idempotency.Store, key, body string) {
	t.Helper()
	rec, err := s.Get(t.Context(), idempotency.ID{Scope: "all", Key: idempotency.Digest(key)})
	if err != nil || rec.State != idempotency.Completed || string(rec.Response.Body) != body || rec.Response.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("%s: the store has %+v, %v; want it completed with %q", key, rec, err, body)
	}
}

// A response that the store could not take is what duplicates get during the outage
// and after it, even when that outlasts the lease and the key was held meanwhile.
func TestKnownOutcomeOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDownable()
		var runs int
		var seen []idempotency.Result
		backlog := &idempotency.Backlog{Store: store, Logger: quiet()}
		send := direct(t, store, idempotency.Options{Backlog: backlog, Observe: func(e idempotency.Event) { seen = append(seen, e.Result) }},
			func(w http.ResponseWriter, _ *http.Request) {
				store.down.Store(true)
				runs++
				w.WriteHeader(201)
				fmt.Fprint(w, "paid")
			})
		for i := range 3 {
			if w := send(); w.Code != 201 || w.Body.String() != "paid" || (w.Header().Get(idempotency.HeaderReplayed) == "true") != (i > 0) {
				t.Errorf("request %d during the outage: got %d %q", i, w.Code, w.Body)
			}
			time.Sleep(time.Minute) // beyond the lease
		}
		// Another process asks first when the store is back.
		c := idempotency.Claim{ID: idempotency.ID{Scope: "t1", Key: idempotency.Digest(key)}, Owner: "other", Lease: time.Minute, Retention: 48 * time.Hour}
		rec, err := store.Idempotency.Get(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		c.Fingerprint = rec.Fingerprint
		if v, err := store.Idempotency.Claim(t.Context(), c); err != nil || v.Outcome != idempotency.Unknown {
			t.Fatalf("another process's claim: %+v, %v", v, err)
		}
		store.down.Store(false)
		time.Sleep(5 * time.Second)
		if v, err := store.Claim(t.Context(), c); err != nil || v.Outcome != idempotency.Replay || string(v.Record.Response.Body) != "paid" {
			t.Errorf("another process's claim after the outage: %+v, %v", v, err)
		}
		if w := send(); w.Code != 201 || w.Body.String() != "paid" || runs != 1 {
			t.Errorf("after the outage: got %d %q, %d runs", w.Code, w.Body, runs)
		}
		if s := backlog.Stats(); s != (idempotency.Stats{}) {
			t.Errorf("the backlog still has %+v", s)
		}
		if want := []idempotency.Result{idempotency.Deferred, idempotency.Replayed, idempotency.Replayed, idempotency.Replayed}; fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("observed %v, want %v", seen, want)
		}
	})
}

// What another has decided during the outage stands: the end that was kept is dropped.
func TestKeptEndIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDownable()
		b := &idempotency.Backlog{Store: store, Logger: quiet()}
		c, e := begun(t, store, "k")
		store.down.Store(true)
		putOff(t, b, e)
		time.Sleep(time.Minute)
		theirs := idempotency.Response{Status: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("theirs")}
		if err := store.Resolve(t.Context(), c.ID, idempotency.Resolution{Response: &theirs, By: "ann", Why: "in the ledger"}); err != nil {
			t.Fatal(err)
		}
		store.down.Store(false)
		time.Sleep(5 * time.Second)
		wantStored(t, store, "k", "theirs")
		if _, known := b.Known(c); known || b.Stats().Waiting != 0 {
			t.Errorf("still kept: %+v", b.Stats())
		}
	})
}

// Each kind of end is kept as what it is.
func TestKeptEndsByDisposition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDownable()
		b := &idempotency.Backlog{Store: store, Logger: quiet()}
		release, r := begun(t, store, "released")
		hold, h := begun(t, store, "held")
		keep, k := begun(t, store, "kept")
		r.Disposition, h.Disposition, h.Note = idempotency.Retry, idempotency.Hold, "no one knows"
		store.down.Store(true)
		for _, e := range []idempotency.Ending{r, h, k} {
			putOff(t, b, e)
		}
		if v, known := b.Known(release); known {
			t.Errorf("a released key: %+v, want the store to be asked", v)
		}
		if v, known := b.Known(hold); !known || v.Outcome != idempotency.Unknown || v.Record.Note != "no one knows" {
			t.Errorf("a held key: %+v, %v", v, known)
		}
		if v, known := b.Known(keep); !known || v.Outcome != idempotency.Replay || v.Record.Response.Status != 201 {
			t.Errorf("a kept response: %+v, %v", v, known)
		}
		keep.Fingerprint = "other"
		if v, known := b.Known(keep); !known || v.Outcome != idempotency.Mismatch {
			t.Errorf("another request under the key: %+v, %v", v, known)
		}
		// A late word on a run whose response is kept already changes nothing.
		k.Disposition = idempotency.Retry
		if _, err := b.End(t.Context(), k); !errors.Is(err, idempotency.ErrFenced) {
			t.Errorf("a second end: %v", err)
		}
		store.down.Store(false)
		time.Sleep(5 * time.Second)
		wantStored(t, store, "kept", "secret body of kept")
		for id, want := range map[idempotency.ID]idempotency.State{release.ID: idempotency.Released, hold.ID: idempotency.Held} {
			if rec, err := store.Get(t.Context(), id); err != nil || rec.State != want {
				t.Errorf("stored as %v, %v, want %v", rec.State, err, want)
			}
		}
	})
}

// An end that the store never takes holds up no other, its key does not become
// abandoned meanwhile, and it is given up after its retention.
func TestEndThatNoStoreTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDownable()
		b := &idempotency.Backlog{Store: store, Logger: quiet()}
		bad, e := begun(t, store, "bad")
		store.refuse.Store(&bad.ID)
		putOff(t, b, e)
		store.down.Store(true)
		for i := range 30 {
			store.down.Store(false)
			_, e := begun(t, store, fmt.Sprint(i))
			store.down.Store(true)
			putOff(t, b, e)
		}
		store.down.Store(false)
		time.Sleep(10 * time.Second)
		for i := range 30 {
			wantStored(t, store, fmt.Sprint(i), fmt.Sprint("secret body of ", i))
		}
		time.Sleep(10 * time.Minute)
		if rec, err := store.Get(t.Context(), bad.ID); err != nil || rec.State != idempotency.Started || !rec.LeaseEnd.After(time.Now()) || store.beats.Load() > 100 {
			t.Errorf("its lease was not kept, or too often: %+v, %v, %d renewals", rec, err, store.beats.Load())
		}
		time.Sleep(48 * time.Hour)
		if s := b.Stats(); s.Waiting != 0 {
			t.Errorf("%d wait for ever", s.Waiting)
		}
	})
}

// The backlog is bounded in entries and bytes; what has no room is an error, and
// logged by the digest of its key alone.
func TestBacklogIsBounded(t *testing.T) {
	store := newDownable()
	var log bytes.Buffer
	b := &idempotency.Backlog{Store: store, MaxEntries: 2, MaxBytes: 3000, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	defer func() {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		b.Close(gone)
	}()
	ends := map[string]idempotency.Ending{}
	for _, k := range []string{"key-one", "key-two", "key-three", "key-large"} {
		_, ends[k] = begun(t, store, k)
	}
	store.down.Store(true)
	putOff(t, b, ends["key-one"])
	large := ends["key-large"]
	large.Response.Body = make([]byte, 3000)
	if deferred, err := b.End(t.Context(), large); deferred || !errors.Is(err, errDown) {
		t.Errorf("too large: deferred %v, %v; want the store's error", deferred, err)
	}
	putOff(t, b, ends["key-two"])
	if deferred, err := b.End(t.Context(), ends["key-three"]); deferred || !errors.Is(err, errDown) {
		t.Errorf("too many: deferred %v, %v; want the store's error", deferred, err)
	}
	if s := b.Stats(); s.Waiting != 2 || s.Bytes > 3000 {
		t.Errorf("kept %+v", s)
	}
	if text := log.String(); !strings.Contains(text, idempotency.Digest("key-three")) || strings.Contains(text, "key-three") || strings.Contains(text, "secret") {
		t.Errorf("log:\n%s\nwant the digest of the key that is lost, and no key or body", text)
	}
}

// Close writes what it can, and names each end that is lost.
func TestCloseOfABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, back := range []bool{true, false} {
			store := newDownable()
			var log bytes.Buffer
			b := &idempotency.Backlog{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			_, e := begun(t, store, "k")
			store.down.Store(true)
			putOff(t, b, e)
			if back {
				time.AfterFunc(2*time.Second, func() { store.down.Store(false) })
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			began := time.Now()
			b.Close(ctx)
			cancel()
			lost := strings.Contains(log.String(), "is lost") && strings.Contains(log.String(), idempotency.Digest("k"))
			if took := time.Since(began); lost == back || took > 10*time.Second || back && took > 5*time.Second {
				t.Errorf("store back %v: closed after %v, logged %q", back, took, log.String())
			}
			if back {
				wantStored(t, store, "k", "secret body of k")
			}
			if strings.Contains(log.String(), "secret") {
				t.Error("the log has a body")
			}
			synctest.Wait()
		}
	})
}

// xor is a cipher that a test can read through.
type xor byte

func (x xor) Seal(p []byte) ([]byte, error) { return x.Open(p) }

func (x xor) Open(p []byte) ([]byte, error) {
	out := bytes.Clone(p)
	for i := range out {
		out[i] ^= byte(x)
	}
	return out, nil
}

// crash leaves a spool behind as a process does that is killed: nothing is flushed.
func crash(t *testing.T, path string, o idempotency.SpoolOptions, keys ...string) (*downable, []idempotency.Claim) {
	t.Helper()
	store := newDownable()
	b := &idempotency.Backlog{Store: store, Logger: quiet()}
	o.Path = path + ".running"
	if err := b.Spool(o); err != nil {
		t.Fatal(err)
	}
	var claims []idempotency.Claim
	var ends []idempotency.Ending
	for _, k := range keys {
		c, e := begun(t, store, k)
		claims, ends = append(claims, c), append(ends, e)
	}
	store.down.Store(true)
	for _, e := range ends {
		putOff(t, b, e)
	}
	for i, c := range claims {
		if v, known := b.Known(c); !known || string(v.Record.Response.Body) != "secret body of "+keys[i] {
			t.Errorf("%s is known as %+v, %v", keys[i], v, known)
		}
	}
	data, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b.Close(gone)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return store, claims
}

// What is in the spool of a process that was killed is known to the next one at once,
// and written when the store is back; the file is private, and empty then.
func TestSpoolComesBack(t *testing.T) {
	for _, c := range []struct {
		name string
		o    idempotency.SpoolOptions
	}{
		{"plain", idempotency.SpoolOptions{}},
		{"encrypted", idempotency.SpoolOptions{Cipher: xor(7)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spool")
			store, claims := crash(t, path, c.o, "one", "two")
			before, _ := os.ReadFile(path)
			if plain := bytes.Contains(before, []byte("text/plain")); plain != (c.o.Cipher == nil) {
				t.Errorf("in the clear: %v", plain)
			}
			// An earlier build's line has a checksum, and the crash has torn one.
			if err := os.WriteFile(path, append(append([]byte("0badc0de "), before...), "{"...), 0o644); err != nil {
				t.Fatal(err)
			}
			o := c.o
			o.Path = path
			b := &idempotency.Backlog{Store: store, Logger: quiet()}
			if err := b.Spool(o); err != nil {
				t.Fatal(err)
			}
			defer b.Close(t.Context())
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if v, known := b.Known(claims[1]); !known || string(v.Record.Response.Body) != "secret body of two" {
				t.Errorf("known: %+v, %v", v, known)
			}
			store.down.Store(false)
			for end := time.Now().Add(30 * time.Second); b.Stats() != (idempotency.Stats{}); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the backlog still has %+v", b.Stats())
				}
			}
			wantStored(t, store, "one", "secret body of one")
			wantStored(t, store, "two", "secret body of two")
			if data, err := os.ReadFile(path); err != nil || len(data) != 0 {
				t.Errorf("the spool still has %d bytes, %v", len(data), err)
			}
		})
	}
}

// A spool that is encrypted is not given up for a missing key, one that is too large
// is not read, and a full one leaves ends in memory.
func TestSpoolIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	store, _ := crash(t, path, idempotency.SpoolOptions{Cipher: xor(7)}, "one")
	data, _ := os.ReadFile(path)
	b := &idempotency.Backlog{Store: store, Logger: quiet()}
	if err := b.Spool(idempotency.SpoolOptions{Path: path}); err == nil {
		t.Error("an encrypted spool was taken without a key")
	}
	tight := &idempotency.Backlog{Store: store, MaxBytes: 10, Logger: quiet()}
	if err := tight.Spool(idempotency.SpoolOptions{Path: path, Cipher: xor(7)}); err == nil {
		t.Error("a spool beyond its bound was read")
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, data) {
		t.Error("the refused spool was changed")
	}
	// A body takes more in the file than in memory.
	b = &idempotency.Backlog{Store: store, MaxBytes: 4000, Logger: quiet()}
	if err := b.Spool(idempotency.SpoolOptions{Path: path + ".small"}); err != nil {
		t.Fatal(err)
	}
	store.down.Store(false)
	c, e := begun(t, store, "k")
	e.Response.Body = bytes.Repeat([]byte("x"), 3000)
	store.down.Store(true)
	putOff(t, b, e)
	if v, known := b.Known(c); !known || v.Outcome != idempotency.Replay || b.Stats().Spooled != 0 {
		t.Errorf("beside a full spool: %+v, %v, %+v", v, known, b.Stats())
	}
	store.down.Store(false)
	b.Close(t.Context())
	wantStored(t, store, "k", string(e.Response.Body))
}

// While one process has the spool another keeps its ends in memory, and takes the
// file over, with what is in it, when the first has ended.
func TestSpoolIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	store := newDownable()
	first, second := &idempotency.Backlog{Store: store, Logger: quiet()}, &idempotency.Backlog{Store: store, Logger: quiet()}
	for _, b := range []*idempotency.Backlog{first, second} {
		if err := b.Spool(idempotency.SpoolOptions{Path: path}); err != nil {
			t.Fatal(err)
		}
	}
	_, one := begun(t, store, "one")
	_, two := begun(t, store, "two")
	store.down.Store(true)
	putOff(t, first, one)
	putOff(t, second, two)
	if s := second.Stats(); s.Spooled != 0 {
		t.Fatalf("the second has the file too: %+v", s)
	}
	first.Close(t.Context()) // returns at once: the file has it
	for end := time.Now().Add(30 * time.Second); second.Stats().Waiting != 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not taken over: %+v", second.Stats())
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Count(data, []byte("\n")) != 2 {
		t.Errorf("the spool has %q, %v; want the ends of both", data, err)
	}
	store.down.Store(false)
	second.Close(t.Context())
	wantStored(t, store, "one", "secret body of one")
	wantStored(t, store, "two", "secret body of two")
}

// A later run's end takes the place of an earlier one's, in the spool as well.
func TestLaterEndReplacesTheEarlier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	store := newDownable()
	c, e := begun(t, store, "k")
	store.down.Store(true)
	b := &idempotency.Backlog{Store: store, Logger: quiet()}
	if err := b.Spool(idempotency.SpoolOptions{Path: path}); err != nil {
		t.Fatal(err)
	}
	earlier, later := e, e
	earlier.Disposition = idempotency.Retry
	later.Token.Fence++
	putOff(t, b, earlier)
	putOff(t, b, later)
	if _, err := b.End(t.Context(), earlier); !errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("the earlier one again: %v", err)
	}
	b.Close(t.Context())
	next := &idempotency.Backlog{Store: store, Logger: quiet()}
	if err := next.Spool(idempotency.SpoolOptions{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer next.Close(t.Context())
	if v, known := next.Known(c); !known || string(v.Record.Response.Body) != "secret body of k" || v.Record.Fence != later.Token.Fence {
		t.Errorf("the next process knows %+v, %v", v, known)
	}
}
