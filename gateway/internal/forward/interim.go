package forward

import (
	"errors"
	"maps"
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
	before := maps.Clone(h)
	EndToEnd(h, http.Header(header))
	h["Content-Length"] = noLength
	i.w.WriteHeader(status)
	clear(h)
	maps.Copy(h, before)
	return nil
}

// noLength is in the header of each interim response, and never sent: net/http takes it
// off in a copy, and sends the copy. Over HTTP/2 it would otherwise send the header itself,
// and still be reading it when the caller has reset the stream and we go on with it.
var noLength = []string{"0"}

func (i *Interim) close() {
	i.mu.Lock()
	i.w = nil
	i.mu.Unlock()
}
