package httpretry

import (
	"cmp"
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/layer"
)

// repeated returns the number of the attempt that an SDK, Envoy or gRPC above says it
// is making, by the header that its makers use; 0 where none says so. It is all
// that can be seen of a layer above without marking every first attempt.
func repeated(h http.Header) int {
	if v := h["X-Stainless-Retry-Count"]; len(v) > 0 { // OpenAI's, Anthropic's and others: retries so far
		if n := small(v[0]); n > 0 {
			return n + 1
		}
	}
	if v := h["Amz-Sdk-Request"]; len(v) > 0 { // AWS: attempt=2; max=3
		for field := range strings.SplitSeq(v[0], ";") {
			if n, ok := strings.CutPrefix(strings.TrimSpace(field), "attempt="); ok {
				return small(n)
			}
		}
	}
	if n := inbound.Repeated(h); n > 0 { // copied from the request that is being served
		return n
	}
	for _, v := range h["X-Goog-Api-Client"] { // Google Cloud: ... gccl-attempt-count/2
		if _, n, ok := strings.Cut(v, "gccl-attempt-count/"); ok {
			n, _, _ = strings.Cut(n, " ")
			return small(n)
		}
	}
	return 0
}

// small reads a number that counts attempts, or 0.
func small(s string) int {
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return int(n)
	}
	return 0
}

// sendSeed makes the identities of requests unguessable, since they come from
// outside.
var sendSeed = maphash.MakeSeed()

// noteSend reports to an outer retry what is being sent, so that a layer in between
// that repeats it by itself is noticed.
func noteSend(req *http.Request) {
	if _, ok := forbear.AttemptFrom(req.Context()); !ok {
		return
	}
	var h maphash.Hash
	h.SetSeed(sendSeed)
	_, _ = h.WriteString(req.Method)
	for _, part := range [...]string{req.URL.Scheme, req.URL.Host, req.URL.Path, req.URL.RawQuery} {
		_ = h.WriteByte(0)
		_, _ = h.WriteString(part)
	}
	layer.NoteSend(req.Context(), h.Sum64())
}

// exhaustedBelow reports whether another forbear, in this process or further
// down the wire, has given this call up already.
func exhaustedBelow(resp *http.Response, err error) bool {
	if err != nil {
		return edge.ExhaustedBelow(err)
	}
	if resp == nil {
		return false // against the contract of RoundTripper, but no reason to panic
	}
	for _, said := range [...][]string{resp.Header[HeaderExhausted], resp.Header[grpcwire.HeaderExhausted]} {
		if len(said) > 0 && said[0] != "" {
			return true
		}
	}
	e, ok := Outcome(resp)
	return ok && edge.ExhaustedBelow(e)
}

// correlated returns req under the correlation id that its headers have, where
// neither its context nor its trace says one: the log of its retries
// then names it.
func correlated(r *forbear.Retryer, req *http.Request) *http.Request {
	h := req.Header
	if len(h) == 0 || len(h["Traceparent"]) == 0 && len(h["X-Correlation-Id"]) == 0 && len(h["X-Request-Id"]) == 0 {
		return req
	}
	if edge.CorrelationOf(req.Context(), r) != "" {
		return req
	}
	id := cmp.Or(inbound.Trace(h), inbound.Correlation(h))
	if id == "" {
		return req
	}
	return req.WithContext(forbear.WithCorrelationID(req.Context(), id))
}
