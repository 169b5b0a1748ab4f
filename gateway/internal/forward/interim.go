package forward

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
)

// maxInterim bounds the interim responses to one request.
const maxInterim = 16

// errInterim is for a target that sends interim responses without end.
var errInterim = errors.New("too many interim responses")

// Interim passes 1xx responses on, such as 103 Early Hints, while the call waits for
// the response. 100 and 101 are not among them: a server says the one by itself, and
// the other is the response.
//
// They are written on a goroutine of their own, which ends before the response begins:
// over HTTP/2 they come on the one that reads for all calls of a connection, and a
// caller who does not read would delay all of them.
type Interim struct {
	Trace httptrace.ClientTrace // to be found by the transport

	mu   sync.Mutex
	w    http.ResponseWriter // nil when there is nothing to wait for
	n    int
	came chan interim  // nil before the first
	done chan struct{} // closed when they are written
}

// interim is one 1xx response.
type interim struct {
	status int
	header http.Header
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

// got takes one, and waits for nothing. It may come when its attempt is over.
func (i *Interim) got(status int, header textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.n++; i.n > maxInterim {
		return errInterim
	}
	if i.w == nil || status == http.StatusContinue {
		return nil
	}
	if i.came == nil {
		i.came, i.done = make(chan interim, maxInterim), make(chan struct{})
		go pass(i.w, i.came, i.done)
	}
	i.came <- interim{status, http.Header(header)}
	return nil
}

// close returns when those that came are written, and takes no more.
func (i *Interim) close() {
	i.mu.Lock()
	if i.w != nil && i.came != nil {
		close(i.came)
	}
	i.w = nil
	done := i.done
	i.mu.Unlock()
	if done != nil {
		<-done
	}
}

// pass writes what comes.
func pass(w http.ResponseWriter, came <-chan interim, done chan<- struct{}) {
	defer close(done)
	h := w.Header()
	before := maps.Clone(h)
	for r := range came {
		EndToEnd(h, r.header)
		maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, "Forbear-") }) // the gateway's own words
		h["Content-Length"] = noLength
		w.WriteHeader(r.status)
		clear(h)
		maps.Copy(h, before)
	}
}

// noLength is in the header of each interim response, and never sent: net/http takes it
// off in a copy, and sends the copy. Over HTTP/2 it would otherwise send the header itself,
// and still be reading it when the caller has reset the stream and we go on with it.
var noLength = []string{"0"}
