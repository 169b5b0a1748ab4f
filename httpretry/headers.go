package httpretry

import (
	"maps"
	"net/http"
	"strconv"
)

// setHeaders gives the clone a header map of its own. The values are shared
// with the caller's request: the transport only adds keys. An attempt number that the
// caller's request has was copied from the request that the caller is serving.
func (x *exchange) setHeaders(a *attempt, number int) {
	t := x.t
	if t.noHeader && x.key == "" && t.credentials == nil && len(x.req.Header[HeaderAttempt]) == 0 {
		return
	}
	due, timed := a.parent.Deadline()
	timed = timed && !t.noHeader
	// As large as need be: maps of up to eight keys are far cheaper.
	h := make(http.Header, len(a.req.Header)+count(!t.noHeader, timed, x.key != "", t.credentials != nil))
	maps.Copy(h, a.req.Header)
	if t.noHeader {
		delete(h, HeaderAttempt)
	} else {
		a.number[0] = strconv.Itoa(number - 1)
		h[HeaderAttempt] = a.number[:1:1]
	}
	if timed { // the deadline travels on, less what is kept for the way back
		a.due[0] = strconv.FormatInt(due.Add(-SafetyMargin).UnixMilli(), 10)
		h[HeaderDeadline] = a.due[:1:1]
	}
	if x.key != "" {
		h[HeaderKey] = []string{x.key}
	}
	a.req.Header = h
}

// count returns how many of the facts hold.
func count(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}
