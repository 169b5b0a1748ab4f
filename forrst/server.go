package forrst

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Refuse returns the response to a request that failed: the errors without
// the retryable boolean, and one retry extension for them. guide is what the
// server knows better than the protocol's defaults; nil takes the defaults.
// Of several errors, the first that must not be retried decides for all,
// else the one with the longest wait. A wait that an error's details name
// (retry_after) is never undercut. An empty id is for a request that could
// not be read.
//
// Refuse without an error to report sends INTERNAL_ERROR.
func Refuse(id string, guide *Retry, errs ...Error) *Response {
	if len(errs) == 0 {
		errs = []Error{{Code: "INTERNAL_ERROR", Message: "no error was given"}}
	}
	r := &Response{Protocol: Current, Result: json.RawMessage("null")}
	if id != "" {
		r.ID = &id
	}
	for _, e := range errs {
		e.retryable, e.flagged = false, false
		r.Errors = append(r.Errors, e)
	}
	retry := defaultRetry(r.Errors)
	if guide != nil {
		retry = *guide
		r.agree(&retry)
	}
	r.Extensions = []Extension{retry.Extension()}
	return r
}

// defaultRetry returns the advice of the protocol's defaults for errors that come
// together. One that must not be retried forbids it for all, since the client repeats
// the whole call; otherwise the longest wait counts. A wait in the details replaces that
// of the default: this server knows better.
func defaultRetry(errs []Error) Retry {
	var longest Row
	for i := range errs {
		row, _ := Default(errs[i].Code)
		if row.Strategy == "" {
			return Retry{}
		}
		if i == 0 || row.After > longest.After {
			longest = row
		}
	}
	retry := longest.Retry()
	if d, ok := (&Response{Errors: errs}).detailsWait(); ok {
		retry.After = new(DurationOf(d))
	}
	return retry
}

// agree raises the wait of retry to that of the details: two waits in one response
// that differ leave the client to guess.
func (r *Response) agree(retry *Retry) {
	d, ok := r.detailsWait()
	if !ok || !retry.Allowed {
		return
	}
	if retry.After != nil {
		if own, readable := retry.After.Wait(); readable && own >= d {
			return
		}
	}
	retry.After = new(DurationOf(d))
}

// detailsWait returns the longest details.retry_after of the errors; ok is
// false when none of them has one that can be read.
func (r *Response) detailsWait() (d time.Duration, ok bool) {
	for i := range r.Errors {
		m, isObject := members(r.Errors[i].Details)
		if !isObject {
			continue
		}
		if one, readable := readDuration(m["retry_after"]); readable {
			d, ok = max(d, one), true
		}
	}
	return d, ok
}

// Status returns the HTTP status of r: 200 without errors, that of the code
// for one error, 400 for several. Proxies and dashboards see it; a Forrst
// client goes by the body.
func (r *Response) Status() int {
	switch len(r.Errors) {
	case 0:
		return http.StatusOK
	case 1:
		row, _ := Default(r.Errors[0].Code)
		return row.Status
	default:
		return http.StatusBadRequest
	}
}

// RetryAfter returns the value of the Retry-After header that agrees with r's
// retry extension, in whole seconds rounded up, or "" when there is none to
// send. A wait of less than a second has none: the header could only make it
// longer.
func (r *Response) RetryAfter() string {
	g, ok := readGuidance(r.Extensions)
	if !ok || !g.allowed || !g.hasAfter || g.after < time.Second {
		return ""
	}
	seconds := g.after / time.Second
	if g.after%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(min(int64(seconds), math.MaxInt32), 10)
}

// Write sends r with its status and, when it asks for a wait, Retry-After.
// The header is for clients and proxies that read only HTTP.
func (r *Response) Write(w http.ResponseWriter) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if after := r.RetryAfter(); after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(r.Status())
	_, err = w.Write(body)
	return err
}

// WriteError is [Refuse] followed by [Response.Write].
func WriteError(w http.ResponseWriter, id string, guide *Retry, errs ...Error) error {
	return Refuse(id, guide, errs...).Write(w)
}
