package forward

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
)

// maxInterim bounds the interim responses to one request.
const maxInterim = 16

// errInterim is for a target that sends interim responses without end.
var errInterim = errors.New("too many interim responses")

// Interim passes 1xx responses on, such as 103 Early Hints, while the call waits for
// the response. 100 and 101 are not among them: a server says the one by itself, and
// the other is the response.
type Interim struct {
	Trace httptrace.ClientTrace // to be found by the transport

	mu sync.Mutex
	w  http.ResponseWriter // nil when there is nothing to wait for
	n  int
}

func (i *Interim) open(w http.ResponseWriter, r *http.Request) {
	// HTTP/1.0 knows none, and while a caller waits for 100 the server writes that one
	// itself, at a time of its own.
	if !r.ProtoAtLeast(1, 1) || r.ProtoMajor == 1 && len(r.Header["Expect"]) > 0 {
		return
	}
	i.w = w
	i.Trace.Got1xxResponse = i.got
}

// got passes one on. It may come when its attempt is over.
func (i *Interim) got(status int, header textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.n++; i.n > maxInterim {
		return errInterim
	}
	if i.w == nil || status == http.StatusContinue {
		return nil
	}
	h := i.w.Header()
	before := h.Clone()
	EndToEnd(h, http.Header(header))
	// The server sends no length with an interim response, and sends a copy of what has
	// one. Over HTTP/2 the map would be the writer's otherwise, and still be when the
	// stream has ended.
	h["Content-Length"] = noLength
	i.w.WriteHeader(status)
	clear(h)
	EndToEnd(h, before)
	return nil
}

var noLength = []string{"0"}

func (i *Interim) close() {
	i.mu.Lock()
	i.w = nil
	i.mu.Unlock()
}
