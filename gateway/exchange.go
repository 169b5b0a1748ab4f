package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// Names of headers in their canonical form.
const (
	headerCorrelation = "X-Correlation-Id"
	headerRequestID   = "X-Request-Id"
)

// exchange is one request of a caller, and the context of the call that it
// becomes.
type exchange struct {
	context.Context
	id [1]string     // the correlation id, ready to be the value of a header
	in *http.Request // as the caller sent it
}

// exchangeOf returns the exchange that a forwarded request belongs to.
func exchangeOf(r *http.Request) *exchange {
	return r.Context().Value(exchangeKey{}).(*exchange) // forward put it there
}

type exchangeKey struct{}

// Value makes the exchange known to those who handle its outgoing request.
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

func newExchange(r *http.Request) *exchange {
	id := correlation(r)
	return &exchange{Context: forbear.WithCorrelationID(r.Context(), id), id: [1]string{id}, in: r}
}

// forward sends the request on, under what its headers say of the call.
func (x *exchange) forward(w http.ResponseWriter, rt *route) {
	r, ctx := x.in, context.Context(x)
	if n, ok := number(r.Header, httpretry.HeaderAttempt); ok && n > 0 && n < 1000 {
		ctx = forbear.ContextWithAttempt(ctx, forbear.Attempt{
			Dependency: rt.Retryer.Dependency(),
			Number:     int(n) + 1,
		})
	}
	if ms, ok := number(r.Header, httpretry.HeaderDeadline); ok {
		// What is kept is for the gateway's own answer. The transport takes as
		// much off again for the dependency's.
		deadline := time.UnixMilli(ms).Add(-httpretry.SafetyMargin)
		if time.Until(deadline) <= 0 {
			x.problem(w, lateCaller)
			return
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if rt.keyed(r) {
		rt.ingress.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	rt.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// number reads a header that holds a number.
func number(h http.Header, name string) (int64, bool) {
	v := h[name]
	if len(v) != 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(v[0], 10, 64)
	return n, err == nil
}

// maxCorrelation is the longest correlation id that is taken over.
const maxCorrelation = 128

// correlation returns the caller's correlation id, or a new one where it brought
// none that could go into logs and headers.
func correlation(r *http.Request) string {
	for _, name := range [...]string{headerCorrelation, headerRequestID} {
		if v := r.Header[name]; len(v) == 1 && isID(v[0]) {
			return v[0]
		}
	}
	if id := httpretry.TraceID(r.Header); id != "" {
		return id
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return hex.EncodeToString(b[:])
}

// isID reports whether s is visible ASCII of a sensible length.
func isID(s string) bool {
	if s == "" || len(s) > maxCorrelation {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
