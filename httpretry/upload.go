package httpretry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/tcpstate"
)

// upload is the body of a request on its way to the server, of one that may take
// time or fail. It knows whose turn it is: the caller's while it is being read, the
// server's otherwise, and lets the attempt's timer run for that one. What the body's
// own Read returned is the caller's fault and not the server's.
type upload struct {
	source io.ReadCloser
	a      *attempt
	again  func() (io.ReadCloser, error) // the request's GetBody

	mu      sync.Mutex
	over    bool      // the timer is no longer for the upload: there is a response, or it has fired
	due     time.Time // when the timer will fire, since it was set anew
	stopped bool      // it will not
	callers bool      // it is the caller's turn
	begun   bool      // some of the body was asked for
	moving  bool      // some of it was read, and not all
	closed  bool      // net/http needs no more of it
	shut    bool      // the source is closed
	reading bool      // the response is being read
	late    party     // whose turn it was when the timer fired, or 0
	err     error     // of the caller's Read
	queued  int       // bytes on their way to the server when last asked; -1 for not yet
	still   int       // how often it has not become less
}

// party is who let a body stand still.
type party uint8

const (
	theCaller party = iota + 1
	theServer
)

// maxUnwatched is the length up to which a body in memory is left as it is: it
// cannot fail, and is gone before a time would have run out.
const maxUnwatched = 32 << 10

// watched reports whether the sending of req's body may take time or fail. What is
// small and in memory is not: net/http sends it in one piece with the headers, which
// it would not do with a body that it does not know.
func watched(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return false
	}
	return req.ContentLength <= 0 || req.ContentLength > maxUnwatched || !inMemory(req.Body)
}

// watchUpload puts the upload between net/http and the body, and returns what the
// attempt's timer calls.
func (a *attempt) watchUpload() func() {
	u := &upload{a: a, source: a.req.Body}
	a.upload, a.req.Body = u, u
	if u.again = a.req.GetBody; u.again != nil {
		a.req.GetBody = u.rewound
	}
	return u.timeUp
}

// rewound is the GetBody of a watched request, for the re-send of a request that was not
// written.
func (u *upload) rewound() (io.ReadCloser, error) {
	body, err := u.again()
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.source, u.begun, u.closed, u.shut, u.err = body, false, false, false, nil
	return u, nil
}

// Read reads the caller's body.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.turn(true).Read(p)
	if err == nil {
		u.turn(false)
	} else {
		u.ended(err)
	}
	return n, err
}

// Close closes the caller's body, once. It may run while Read does.
func (u *upload) Close() error {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	return u.shutSource()
}

func (u *upload) shutSource() error {
	u.mu.Lock()
	done, source := u.shut, u.source
	u.shut = true
	u.mu.Unlock()
	if done {
		return nil
	}
	return source.Close()
}

// turn gives one side the time that a body may stand still, and returns the body.
func (u *upload) turn(callers bool) io.Reader {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.begun && u.closed {
		// It went to a connection that was lost, or is of a stream that ends while it is
		// begun: then net/http does not close it again.
		context.AfterFunc(u.a.ctx, func() { _ = u.Close() })
		u.closed, u.shut = false, false
	}
	u.begun = true
	u.moving, u.callers, u.queued = true, callers, -1
	if !u.over || u.reading {
		u.set(u.a.idle)
	}
	return u.source
}

// ended gives the server its time for a response, after the last of the body.
func (u *upload) ended(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.moving, u.callers = false, false
	if err != io.EOF && !u.closed {
		u.err = err
	}
	if !u.over {
		if u.queued, u.still = u.inQueue(), 0; u.queued > 0 {
			u.leaving()
		} else {
			u.set(u.a.limit)
		}
	}
}

// reads lets the timer run while the response is being read.
func (u *upload) reads(reading bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reading = reading; reading {
		u.set(u.a.idle)
	} else {
		u.set(0)
	}
}

// set starts the timer anew; 0 and less stop it. It is called with mu held.
func (u *upload) set(d time.Duration) {
	if u.a.timer == nil {
		return
	}
	if u.stopped = d <= 0; u.stopped {
		u.a.timer.Stop()
		return
	}
	u.due = time.Now().Add(d)
	u.a.timer.Reset(d)
}

// timeUp ends the attempt, unless what was sent still is on its way, or the server
// waits for more of it with its response half said. The caller's Read that hangs is
// helped to its end by closing what it reads, as far as that helps: net/http waits for
// it, for ever if need be.
func (u *upload) timeUp() {
	switch kept, late := u.judge(); {
	case late != theCaller:
	case kept != nil:
		_ = kept.Close() // no attempt will follow
	default:
		_ = u.shutSource()
	}
}

// judge says whose fault it is that the time is up, and ends the attempt. kept is what
// the caller's body is read through, if it is kept for a replay.
func (u *upload) judge() (kept *replay, late party) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.stopped, time.Until(u.due) > 0:
		return nil, 0 // since it has fired
	case u.over && u.callers && !u.closed:
		u.set(u.a.idle)
		return nil, 0
	case !u.over && !u.callers && u.leaving():
		return nil, 0
	case u.over:
		late = u.late // as it was found before, if it was
	case u.callers:
		late = theCaller
	case u.moving:
		late = theServer
	}
	u.over, u.late = true, late
	u.a.cancel()
	if r, ok := u.source.(*replayReader); ok {
		kept = r.r
	}
	return kept, late
}

// leaving reports whether some of the sent bytes are still leaving the system:
// then the line is slow and not the server, and the timer goes on, in steps. When all
// of it has left the server's time begins, unless the caller is to send more. A queue
// that has not moved for a whole time is the server's. In the middle of a body the first
// reading is taken when the time is up, since more may have been written after it began.
// It is called with mu held.
func (u *upload) leaving() bool {
	const steps = 8
	before, limit := u.queued, u.a.limit
	if u.moving {
		limit = u.a.idle
	}
	if before == 0 {
		return false
	}
	u.queued = u.inQueue()
	switch {
	case u.queued == 0:
		u.set(limit)
		return before > 0
	case before < 0 || u.queued < before:
		u.still = 0
	default:
		u.still++
	}
	u.set(limit/steps + 1)
	return u.still < steps
}

// inQueue returns how many of the sent bytes are not known to have arrived, or 0 where
// that cannot be said. Over HTTP/2 it is that of all requests on the connection.
func (u *upload) inQueue() int {
	conn := u.a.guard.Conn()
	if conn == nil {
		return 0
	}
	n, _ := tcpstate.Queued(conn)
	return n
}

// leave takes the timer away from the upload, which may go on: the response is
// there. A timer that has just fired for one of its steps must not end that response.
func (u *upload) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over, u.stopped = true, true
}

// stood reports whether the body stood still for too long.
func (u *upload) stood() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.late != 0
}

// fault returns what the caller's body did wrong, or nil.
func (u *upload) fault() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.late == theCaller {
		return errCallerStalled
	}
	return u.err
}

// errCallerStalled is for a body that gave nothing for too long.
var errCallerStalled = errors.New("the caller sent nothing for too long")

// callersFault returns the failure of an attempt that the caller's body has ended.
// It says nothing about the server, and would not go better the next time.
func (a *attempt) callersFault() (forbear.Failure, bool) {
	if !a.watching() {
		return forbear.Failure{}, false
	}
	err := a.upload.fault()
	switch {
	case err == nil:
		return forbear.Failure{}, false
	case err == errCallerStalled:
		err = fmt.Errorf("reading the request body: %w: %v", err, a.idle)
	default:
		err = fmt.Errorf("reading the request body: %w", err)
	}
	return forbear.Failure{Class: forbear.ClassCanceled, Type: errtype.RequestBody, Err: err}, true
}
