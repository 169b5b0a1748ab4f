package idempotency

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/wait"
)

// Handler puts idempotency keys in front of next: a POST or PATCH without a
// good key is refused, one that was done before gets its stored response, and
// everything else passes. The handler sees a request whose context outlives the
// client's connection, and whose response goes out after it is stored. All faults
// of the options are returned together.
func Handler(store Store, opts Options, next http.Handler) (http.Handler, error) {
	if err := opts.complete(store); err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	if next == nil {
		return nil, errors.New("idempotency: the handler is nil")
	}
	h := &handler{Options: opts, store: store, next: next, names: storable(opts.KeepHeaders), room: newRoom()}
	h.flights.limit = opts.MaxWaiters
	h.flights.store, _ = store.(Waker)
	return h, nil
}

// handler is the middleware. It is immutable but for its flights, and safe for
// concurrent use.
type handler struct {
	Options
	store   Store
	next    http.Handler
	names   map[string]bool
	flights flights
	usual   usual // how long operations take
	room    *room // for the large bodies that are being read
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost && r.Method != http.MethodPatch || h.Optional && len(idemkey.Lines(r.Header)) == 0 {
		h.next.ServeHTTP(w, r)
		return
	}
	x := &keyedRequest{h: h, w: w, r: r, ctx: context.WithoutCancel(r.Context())}
	c, p, result := h.read(x)
	if result != "" {
		x.refuse(p, result)
		return
	}
	if h.Transaction {
		x.transact(c)
		return
	}
	x.serve(c)
}

// read turns the request into a claim, or says what is wrong with it. The body
// is read whole.
func (h *handler) read(x *keyedRequest) (c Claim, p refusal, bad Result) {
	key, err := readKey(x.r.Header)
	switch {
	case errors.Is(err, errNoKey):
		return c, missingKey, Invalid
	case err != nil:
		return c, invalidKey, Invalid
	}
	scope, err := h.Scope(x.r)
	if err != nil || scope == "" {
		return c, unauthenticated, NoPrincipal
	}
	body, err := h.body(x.w, x.r, ScopeOf(scope)) // whose it is decides who waits, wherever it goes
	switch {
	case errors.Is(err, errTooLarge):
		return c, tooLarge, TooLarge
	case errors.Is(err, errOverloaded):
		return c, overloaded, Overloaded
	case errors.Is(err, errStalled):
		return c, stalled, Stalled
	case err != nil:
		return c, unreadable, Invalid
	}
	x.body, x.scope = body, scope
	if h.Place != nil {
		if place := h.Place(x.r); place != "" {
			scope = place + " " + scope
		}
	}
	return Claim{
		ID: ID{Scope: ScopeOf(scope), Key: Digest(key)}, Fingerprint: h.Fingerprint(x.r, body), Operation: operation(x.r), Owner: rand.Text(),
		Lease: h.Lease, Retention: h.Retention, Rerun: h.Rerun,
	}, p, ""
}

// ScopeOf returns the [ID.Scope] of a principal: its name, with the place before it
// where there is one, or the digest of that where it is longer than 200 bytes or no text.
func ScopeOf(principal string) string {
	if len(principal) > 200 || !utf8.ValidString(principal) || strings.ContainsRune(principal, 0) {
		return "sha256:" + Digest(principal)
	}
	return principal
}

// operation names the request for people, without its query.
func operation(r *http.Request) string {
	op := r.Method + " " + r.URL.EscapedPath()
	return op[:min(len(op), 200)]
}

// keyedRequest is one request with a key, on its way through the middleware.
type keyedRequest struct {
	h      *handler
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context // the request's, but for its end
	body   []byte
	scope  string // the principal, without the place
	waited time.Duration
}

// refuse ends the request with a problem, and observes why.
func (x *keyedRequest) refuse(p refusal, why Result) {
	if (why == TooLarge || why == Overloaded || why == Stalled) && x.r.ProtoMajor == 1 {
		x.w.Header().Set("Connection", "close") // the rest of the body is not waited for
	}
	x.h.Observe(Event{Result: why, Waited: x.waited})
	p.write(x.w, x.r)
}

// serve claims, waits for another's run where there is one, and runs.
func (x *keyedRequest) serve(c Claim) {
	start := time.Now()
	for {
		v, err := x.claim(c)
		if err != nil {
			x.storeFailed(err)
			return
		}
		if v.Outcome == Acquired {
			if !x.former(c, v.Record) {
				x.run(c, v.Record)
			}
			return
		}
		if v.Outcome != InProgress {
			x.respond(v)
			return
		}
		if !x.again(c, v, start) {
			return
		}
	}
}

// again waits for the run that v found, as long as its operation usually takes since
// start, and reports whether to claim again. Otherwise the request is refused.
func (x *keyedRequest) again(c Claim, v Verdict, start time.Time) bool {
	left := x.h.patience(c.Operation) - time.Since(start)
	again := left > 0 && x.wait(c, v, left)
	x.waited = time.Since(start)
	if !again {
		x.refuse(busy(x.h.retryAfter(c.Operation, x.waited, v.LeaseLeft)), Busy)
	}
	return again
}

// claim asks the store, whether or not the client is still there: its request
// has come whole. A claim whose response was lost may have been granted: it is
// taken back, so that the client's next attempt does not meet it. The store need not
// be up for what this process knows.
func (x *keyedRequest) claim(c Claim) (Verdict, error) {
	if v, known := x.h.Backlog.Known(c); known {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(x.ctx, x.h.StoreTimeout)
	defer cancel()
	v, err := x.h.store.Claim(ctx, c)
	if err != nil {
		go x.h.takeBack(Token{ID: c.ID, Owner: c.Owner})
	}
	return v, err
}

// takeBack releases a claim that may have been granted. It is best effort: what it
// cannot reach ends with the lease.
func (h *handler) takeBack(t Token) {
	for _, ceiling := range []time.Duration{1, time.Second, 5 * time.Second} {
		time.Sleep(wait.Jitter(ceiling)) // at once, then with full jitter
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		err := h.store.Release(ctx, t)
		cancel()
		if err == nil {
			return
		}
	}
}

// storeFailed refuses the request: without a store nothing runs unprotected.
func (x *keyedRequest) storeFailed(err error) {
	x.h.Logger.LogAttrs(x.r.Context(), slog.LevelError, "idempotency store failed: request refused", slog.String("error", err.Error()))
	x.refuse(storeDown, StoreError)
}

// request returns the request as the handler gets it: with the body that was
// read, and a context that outlives the connection.
func (x *keyedRequest) request(ctx context.Context) *http.Request {
	r := x.r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(x.body))
	r.ContentLength = int64(len(x.body))
	r.TransferEncoding = nil
	return r
}
