package consume

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// maxEvent bounds an event, in bytes.
const maxEvent = 256 << 10

// CloudEvents returns a handler that takes CloudEvents 1.0 over HTTP, in binary
// or structured mode, one a request. It responds 204 when the sender may forget
// the event, also when that is because it lies in the dead-letter queue, and
// 503 with Retry-After when it is to send it again.
func CloudEvents(c *Consumer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxEvent+1))
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
			return
		case len(body) > maxEvent:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		e, err := HTTP.Decode(lines(r.Header), body)
		if errors.Is(err, errMedia) {
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return
		}
		var d Decision
		if err != nil {
			d = c.Poison(r.Context(), e, deadletter.ReasonUndecodable, err.Error())
		} else {
			d = c.Consume(r.Context(), e)
		}
		if d.Acknowledge() {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		wait := d.Wait(time.Now())
		w.Header().Set("Retry-After", strconv.FormatInt(max(int64((wait+time.Second-1)/time.Second), 1), 10))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
}

// lines lists the headers by name; HTTP has no order between names.
func lines(h http.Header) (list []deadletter.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			list = append(list, deadletter.Header{Name: name, Value: v})
		}
	}
	return list
}
