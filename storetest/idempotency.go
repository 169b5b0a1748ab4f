package storetest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// RunIdempotency holds an idempotency.Store to its contract. open returns an
// empty store, and the test cleans it up.
//
// The suite follows the store's own clock, with leases of a fraction of a
// second: a database decides by its own time whether a lease has ended.
func RunIdempotency(t *testing.T, open func(t *testing.T) idempotency.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, idempotency.Store)
	}{
		{"FirstClaimWins", testKeyClaim},
		{"OneOfManyWins", testKeyRace},
		{"OtherFingerprintIsMismatch", testKeyMismatch},
		{"AnswerComesBackWhole", testKeyAnswer},
		{"ReleaseKeepsTheFence", testKeyRelease},
		{"AbandonedIsHeld", testKeyAbandoned},
		{"AbandonedIsTakenOver", testKeyTakeover},
		{"LateOwnerMayStillEndWhatIsHeld", testKeyLate},
		{"RenewKeepsTheLease", testKeyRenew},
		{"WritesAreFenced", testKeyFence},
		{"HeldIsResolved", testKeyResolve},
		{"ResolutionIsFenced", testKeyResolveFence},
		{"ExpiredIsAbsent", testKeyExpiry},
		{"SweepLeavesWhatCounts", testKeySweep},
		{"ListIsPaged", testKeyList},
		{"ListFindsAKey", testKeyFind},
		{"ScopesAreApart", testKeyScopes},
		{"EndsAreHeard", testKeyWakes},
		{"CensusCountsWhatWaits", testKeyCensus},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// A lease short enough to let end, and a sleep that outlasts it by a wide
// margin.
const (
	shortLease = 40 * time.Millisecond
	pastLease  = 120 * time.Millisecond
)

// owners numbers the claimants, so that every claim of a test comes from
// another process. A claim is repeatable by the same owner, and a shared
// name would hide a store that grants a key twice.
var owners atomic.Int64

// keyClaim is a claim of a key by a new owner, with a lease and a retention
// that no test outlives.
func keyClaim(key string) idempotency.Claim {
	return idempotency.Claim{
		ID: idempotency.ID{Scope: "t1", Key: idempotency.Digest(key)}, Fingerprint: "f1", Operation: "POST /pay",
		Owner: fmt.Sprint("owner-", owners.Add(1)), Lease: time.Minute, Retention: time.Hour,
	}
}

// tokenOf is the token of the run that acquired v: every later write
// presents it.
func tokenOf(v idempotency.Verdict) idempotency.Token {
	return idempotency.Token{ID: v.Record.ID, Owner: v.Record.Owner, Fence: v.Record.Fence}
}

// wantKey claims and stops the test on any other outcome, since the steps
// after it build on that outcome.
func wantKey(t *testing.T, s idempotency.Store, c idempotency.Claim, want idempotency.ClaimOutcome) idempotency.Verdict {
	t.Helper()
	v := must(s.Claim(t.Context(), c))(t)
	if v.Outcome != want {
		t.Fatalf("outcome %d, want %d (%+v)", v.Outcome, want, v.Record)
	}
	return v
}

// fencedErr holds a write that has lost its fence to the sentinel that
// callers branch on.
func fencedErr(t *testing.T, what string, err error) {
	t.Helper()
	wantErr(t, what, err, idempotency.ErrFenced)
}

// The first claim acquires the key with fence 1 and attempt 1. The second
// one learns that the key is in use and for how long, which becomes a
// Retry-After.
func testKeyClaim(t *testing.T, s idempotency.Store) {
	c, began := keyClaim("k"), time.Now()
	v := wantKey(t, s, c, idempotency.Acquired)
	if v.Record.Fence != 1 || v.Record.Attempt != 1 || v.Record.Owner != c.Owner {
		t.Errorf("got %+v", v.Record)
	}
	v = wantKey(t, s, keyClaim("k"), idempotency.InProgress)
	// The store's clock may differ a little from this one's.
	if least := c.Lease - time.Since(began) - time.Second; v.LeaseLeft < least || v.LeaseLeft > c.Lease {
		t.Errorf("lease left: %v, want %v at least", v.LeaseLeft, least)
	}
	if rec, err := s.Get(t.Context(), c.ID); err != nil || rec.State != idempotency.Started || rec.Operation != "POST /pay" {
		t.Errorf("got %+v, %v", rec, err)
	}
	wantErr(t, "reading a record that is none", errOf(s.Get(t.Context(), idempotency.ID{Scope: "t1", Key: "none"})), idempotency.ErrNotFound)
}

// Sixteen requests with one key at the same time are the case that
// idempotency keys exist for. Exactly one may run.
func testKeyRace(t *testing.T, s idempotency.Store) {
	var won atomic.Int64
	parallel(16, func(int) {
		// A failing test must not turn the others' claims into
		// cancellations.
		v, err := s.Claim(context.WithoutCancel(t.Context()), keyClaim("k"))
		switch {
		case err != nil:
			t.Error(err)
		case v.Outcome == idempotency.Acquired:
			won.Add(1)
		case v.Outcome != idempotency.InProgress:
			t.Errorf("outcome %d", v.Outcome)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d won, want 1", won.Load())
	}
}

// The same key with another body is a client's mistake in every state of the
// record, and never a replay of the wrong response.
func testKeyMismatch(t *testing.T, s idempotency.Store) {
	other := keyClaim("k")
	other.Fingerprint = "f2"
	k := tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired))
	// While the first is running.
	wantKey(t, s, other, idempotency.Mismatch)
	check(t, s.Release(t.Context(), k))
	wantKey(t, s, other, idempotency.Mismatch)
	k = tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired))
	check(t, s.Complete(t.Context(), k, idempotency.Response{Status: 200}, time.Hour))
	wantKey(t, s, other, idempotency.Mismatch)
}

// A stored response comes back byte by byte, with repeated headers in their
// order. A tombstone comes back as one: the operation is known to be done,
// and its response is not kept.
func testKeyAnswer(t *testing.T, s idempotency.Store) {
	// A body that is no text, and a header with two values in their order.
	a := idempotency.Response{Status: 201, Header: http.Header{"Location": {"/pay/1"}, "Link": {"<a>", "<b>"}}, Body: []byte("\x00\xff{}")}
	k := tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired))
	check(t, s.Complete(t.Context(), k, a, time.Hour))
	v := wantKey(t, s, keyClaim("k"), idempotency.Replay)
	if got := v.Record.Response; got == nil || fmt.Sprint(*got) != fmt.Sprint(a) {
		t.Errorf("got %v, want %v", got, a)
	}
	k = tokenOf(wantKey(t, s, keyClaim("tomb"), idempotency.Acquired))
	check(t, s.Complete(t.Context(), k, idempotency.Response{Status: 201, Tombstone: idempotency.Oversize}, time.Hour))
	// A tombstone keeps the status, and a body was never stored.
	if v := wantKey(t, s, keyClaim("tomb"), idempotency.Replay); v.Record.Response.Tombstone != idempotency.Oversize || len(v.Record.Response.Body) != 0 {
		t.Errorf("got %+v", v.Record.Response)
	}
}

// A released key may be claimed again at once. Its fence goes on counting,
// so that the first owner cannot write into the second run.
func testKeyRelease(t *testing.T, s idempotency.Store) {
	k := tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired))
	check(t, s.Release(t.Context(), k))
	if v := wantKey(t, s, keyClaim("k"), idempotency.Acquired); v.Record.Fence != 2 || v.Record.Attempt != 2 {
		t.Errorf("got %+v", v.Record)
	}
	// A claim whose response was lost is taken back by its owner alone.
	c := keyClaim("lost")
	wantKey(t, s, c, idempotency.Acquired)
	check(t, s.Release(t.Context(), idempotency.Token{ID: c.ID, Owner: c.Owner}))
	wantKey(t, s, keyClaim("lost"), idempotency.Acquired)
}

// A run that stops renewing its lease may have done its work. Unless the run
// was begun as repeatable, its record is held for a person to resolve.
func testKeyAbandoned(t *testing.T, s idempotency.Store) {
	c := keyClaim("k")
	c.Lease = shortLease
	wantKey(t, s, c, idempotency.Acquired)
	time.Sleep(pastLease)
	again := keyClaim("k")
	again.Rerun = true // not what the run was begun under
	if v := wantKey(t, s, again, idempotency.Unknown); v.Record.Note != idempotency.Abandoned {
		t.Errorf("got %+v", v.Record)
	}
	wantKey(t, s, keyClaim("k"), idempotency.Unknown)
}

// A run that was begun as repeatable may be taken over once its lease has
// ended. Each of the old owner's writes must then fail, late as they are.
func testKeyTakeover(t *testing.T, s idempotency.Store) {
	c := keyClaim("k")
	c.Lease, c.Rerun = shortLease, true
	old := tokenOf(wantKey(t, s, c, idempotency.Acquired))
	time.Sleep(pastLease)
	again := keyClaim("k")
	again.Rerun = true
	v := wantKey(t, s, again, idempotency.Acquired)
	if v.Record.Fence != 2 || v.Record.Attempt != 2 {
		t.Errorf("got %+v", v.Record)
	}
	fencedErr(t, "renew", s.Renew(t.Context(), old, time.Minute))
	fencedErr(t, "complete", s.Complete(t.Context(), old, idempotency.Response{Status: 200}, time.Hour))
	fencedErr(t, "release", s.Release(t.Context(), old))
	fencedErr(t, "hold", s.Hold(t.Context(), old, "late"))
	check(t, s.Complete(t.Context(), tokenOf(v), idempotency.Response{Status: 201}, time.Hour))
}

// An owner that was only slow still holds the fence. It may renew or
// complete a record that was held in the meantime, since its outcome is
// better knowledge than none.
func testKeyLate(t *testing.T, s idempotency.Store) {
	c := keyClaim("k")
	c.Lease = shortLease
	k := tokenOf(wantKey(t, s, c, idempotency.Acquired))
	time.Sleep(pastLease)
	wantKey(t, s, keyClaim("k"), idempotency.Unknown)
	check(t, s.Renew(t.Context(), k, time.Minute)) // it lives after all
	wantKey(t, s, keyClaim("k"), idempotency.InProgress)
	check(t, s.Hold(t.Context(), k, "cut off"))
	check(t, s.Complete(t.Context(), k, idempotency.Response{Status: 201}, time.Hour))
	wantKey(t, s, keyClaim("k"), idempotency.Replay)
}

// Renewing moves the end of the lease, so that a long operation is not taken
// over while it runs.
func testKeyRenew(t *testing.T, s idempotency.Store) {
	c := keyClaim("k")
	c.Lease, c.Rerun = shortLease, true
	k := tokenOf(wantKey(t, s, c, idempotency.Acquired))
	check(t, s.Renew(t.Context(), k, time.Minute))
	time.Sleep(pastLease)
	c.Owner = "other"
	wantKey(t, s, c, idempotency.InProgress)
}

// A write needs the id, the owner and the fence of the claim, all three.
// After completion even the right token changes nothing.
func testKeyFence(t *testing.T, s idempotency.Store) {
	k := tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired))
	// One wrong part at a time: a store that compares only two of the three
	// fails here.
	for name, bad := range map[string]idempotency.Token{
		"owner": {ID: k.ID, Owner: "thief", Fence: k.Fence},
		"fence": {ID: k.ID, Owner: k.Owner, Fence: k.Fence + 1},
		"id":    {ID: idempotency.ID{Scope: "t2", Key: k.ID.Key}, Owner: k.Owner, Fence: k.Fence},
	} {
		fencedErr(t, name, s.Complete(t.Context(), bad, idempotency.Response{Status: 200}, time.Hour))
		fencedErr(t, name, s.Release(t.Context(), bad))
	}
	check(t, s.Complete(t.Context(), k, idempotency.Response{Status: 201}, time.Hour))
	fencedErr(t, "renew after the end", s.Renew(t.Context(), k, time.Minute))
	fencedErr(t, "release after the end", s.Release(t.Context(), k))
	if v := wantKey(t, s, keyClaim("k"), idempotency.Replay); v.Record.Response.Status != 201 {
		t.Errorf("got %+v", v.Record.Response)
	}
}

// Only a held record can be resolved: with a response, which is then
// replayed, or without one, which frees the key. Either way the run that
// still goes on has lost its fence, and the note says who decided and why.
func testKeyResolve(t *testing.T, s idempotency.Store) {
	for _, name := range []string{"done", "undone"} {
		k := tokenOf(wantKey(t, s, keyClaim(name), idempotency.Acquired))
		wantErr(t, "a running one", s.Resolve(t.Context(), k.ID, idempotency.Resolution{}), idempotency.ErrNotHeld)
		check(t, s.Hold(t.Context(), k, "cut off"))
		wantKey(t, s, keyClaim(name), idempotency.Unknown)
		res := idempotency.Resolution{By: "ann", Why: "ledger"}
		// Two records, one for each way to resolve.
		if name == "done" {
			res.Response = &idempotency.Response{Status: 201, Body: []byte("x")}
		}
		check(t, s.Resolve(t.Context(), k.ID, res))
		fencedErr(t, "complete after it was resolved", s.Complete(t.Context(), k, idempotency.Response{Status: 200}, time.Hour))
	}
	v := wantKey(t, s, keyClaim("done"), idempotency.Replay)
	if v.Record.Response.Status != 201 || string(v.Record.Response.Body) != "x" || v.Record.Note != "resolved by ann: ledger" {
		t.Errorf("got %+v", v.Record)
	}
	wantKey(t, s, keyClaim("undone"), idempotency.Acquired)
	wantErr(t, "resolving a record that is none", s.Resolve(t.Context(), idempotency.ID{Scope: "t1", Key: "none"}, idempotency.Resolution{}), idempotency.ErrNotFound)
}

// What an operator says of the run that they looked at is not their word on a
// later one.
func testKeyResolveFence(t *testing.T, s idempotency.Store) {
	ctx := t.Context()
	seen := tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired))
	check(t, s.Hold(ctx, seen, "cut off"))
	check(t, s.Resolve(ctx, seen.ID, idempotency.Resolution{By: "bob", Why: "not in the ledger"}))
	check(t, s.Hold(ctx, tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired)), "cut off again"))
	late := idempotency.Resolution{Response: &idempotency.Response{Status: 201}, By: "ann", Why: "ledger", Fence: seen.Fence}
	wantErr(t, "a word on an earlier run", s.Resolve(ctx, seen.ID, late), idempotency.ErrNotHeld)
	if v := wantKey(t, s, keyClaim("k"), idempotency.Unknown); v.Record.Note != "cut off again" || v.Record.Fence != 2 {
		t.Errorf("got %+v", v.Record)
	}
	late.Fence = 2
	check(t, s.Resolve(ctx, seen.ID, late))
	wantKey(t, s, keyClaim("k"), idempotency.Replay)
}

// An expired record is as good as absent: another fingerprint may claim the
// key. The fence alone survives, since the first owner may still be alive.
func testKeyExpiry(t *testing.T, s idempotency.Store) {
	k := tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired))
	check(t, s.Complete(t.Context(), k, idempotency.Response{Status: 201}, shortLease))
	time.Sleep(pastLease)
	other := keyClaim("k")
	other.Fingerprint = "f2"
	v := wantKey(t, s, other, idempotency.Acquired)
	if v.Record.Fence != 2 || v.Record.Attempt != 1 || v.Record.Response != nil {
		t.Errorf("got %+v: the fence goes on, all else begins anew", v.Record)
	}
}

// Sweep removes what has expired and nothing else. Held records stay past
// their retention, because no one has resolved them yet, and so do runs that
// were abandoned.
func testKeySweep(t *testing.T, s idempotency.Store) {
	ctx := t.Context()
	gone := tokenOf(wantKey(t, s, keyClaim("gone"), idempotency.Acquired))
	check(t, s.Complete(ctx, gone, idempotency.Response{Status: 201}, shortLease))
	kept := tokenOf(wantKey(t, s, keyClaim("kept"), idempotency.Acquired))
	check(t, s.Complete(ctx, kept, idempotency.Response{Status: 201}, time.Hour))
	short := keyClaim("abandoned")
	short.Lease, short.Retention = shortLease, time.Millisecond
	wantKey(t, s, short, idempotency.Acquired)
	held := keyClaim("held")
	// Past its retention, and still not to be swept.
	held.Retention, held.Lease = time.Millisecond, shortLease
	check(t, s.Hold(ctx, tokenOf(wantKey(t, s, held, idempotency.Acquired)), "cut off"))
	wantKey(t, s, keyClaim("running"), idempotency.Acquired)
	time.Sleep(pastLease)
	if n := must(s.Sweep(ctx, 10))(t); n != 1 {
		t.Errorf("swept %d, want 1", n)
	}
	wantKey(t, s, keyClaim("kept"), idempotency.Replay)
	wantKey(t, s, keyClaim("abandoned"), idempotency.Unknown)
	wantKey(t, s, keyClaim("held"), idempotency.Unknown)
	wantKey(t, s, keyClaim("running"), idempotency.InProgress)
	wantKey(t, s, keyClaim("gone"), idempotency.Acquired)
}

// Pages are walked by the last id, and no page shows a stored body: lists
// are for operators, and bodies are the callers' data. Abandoned runs are
// listed as held.
func testKeyList(t *testing.T, s idempotency.Store) {
	ctx := t.Context()
	for i := range 5 {
		check(t, s.Hold(ctx, tokenOf(wantKey(t, s, keyClaim(fmt.Sprint("h", i)), idempotency.Acquired)), "cut off"))
	}
	late := keyClaim("late")
	late.Lease = shortLease
	wantKey(t, s, late, idempotency.Acquired)
	wantKey(t, s, keyClaim("running"), idempotency.Acquired)
	check(t, s.Complete(ctx, tokenOf(wantKey(t, s, keyClaim("done"), idempotency.Acquired)), idempotency.Response{Status: 201, Body: []byte("private")}, time.Hour))
	time.Sleep(pastLease)
	// Six are held: the five, and the abandoned one.
	for state, want := range map[idempotency.State]int{"": 8, idempotency.Held: 6, idempotency.Started: 1, idempotency.Completed: 1, idempotency.Released: 0} {
		seen := map[idempotency.ID]bool{}
		f := idempotency.Filter{State: state, Limit: 2}
		// More pages than there are records: the last ones have to be
		// empty.
		for range 10 {
			for _, r := range must(s.List(ctx, f))(t) {
				if seen[r.ID] || state != "" && r.State != state || r.Response != nil && len(r.Response.Body) > 0 {
					t.Errorf("state %q lists %+v", state, r)
				}
				seen[r.ID] = true
				f.After = r.ID
			}
		}
		if len(seen) != want {
			t.Errorf("state %q: %d records, want %d", state, len(seen), want)
		}
	}
	if list, err := s.List(ctx, idempotency.Filter{Scope: "t2"}); err != nil || len(list) != 0 {
		t.Errorf("another's scope: %v, %v", list, err)
	}
}

// A key is found by its digest, in its scope or in all.
func testKeyFind(t *testing.T, s idempotency.Store) {
	ctx := t.Context()
	other := keyClaim("k")
	other.ID.Scope = "t2"
	other.Lease = shortLease
	wantKey(t, s, other, idempotency.Acquired)
	wantKey(t, s, keyClaim("neighbor"), idempotency.Acquired)
	check(t, s.Complete(ctx, tokenOf(wantKey(t, s, keyClaim("k"), idempotency.Acquired)), idempotency.Response{Status: 201, Body: []byte("private")}, time.Hour))
	time.Sleep(pastLease)
	digest := idempotency.Digest("k")
	for _, c := range []struct {
		f    idempotency.Filter
		want string
	}{
		{idempotency.Filter{Key: digest}, "t1 completed, t2 held"},
		{idempotency.Filter{Key: digest, State: idempotency.Held}, "t2 held"},
		{idempotency.Filter{Key: digest, Scope: "t2"}, "t2 held"},
		{idempotency.Filter{Key: digest, Scope: "t1"}, "t1 completed"},
		{idempotency.Filter{Key: digest, Scope: "t1", State: idempotency.Held}, ""},
		{idempotency.Filter{Key: digest, After: idempotency.ID{Scope: "t1", Key: digest}}, "t2 held"},
		{idempotency.Filter{Key: digest, Scope: "t3"}, ""},
		{idempotency.Filter{Key: idempotency.Digest("none")}, ""},
	} {
		var got []string
		for _, r := range must(s.List(ctx, c.f))(t) {
			if r.ID.Key != digest || r.Response != nil && len(r.Response.Body) > 0 {
				t.Errorf("%+v lists %+v", c.f, r)
			}
			got = append(got, r.ID.Scope+" "+string(r.State))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%+v lists %q, want %q", c.f, text, c.want)
		}
	}
}

// The same key in two scopes is two keys: a scope is one tenant's.
func testKeyScopes(t *testing.T, s idempotency.Store) {
	wantKey(t, s, keyClaim("k"), idempotency.Acquired)
	other := keyClaim("k")
	other.ID.Scope = "t2"
	wantKey(t, s, other, idempotency.Acquired)
}
