package httpretry

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/sendqueue"
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
	callers bool      // it is the caller's turn
	moving  bool      // some of the body was read, and not all
	closed  bool      // net/http needs no more of it
	reading bool      // the response is being read
	late    party     // whose turn it was when the timer fired, or 0
	err     error     // of the caller's Read
	queued  int       // bytes that were still on their way when the timer fired before
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

// rewound is the GetBody of a watched request, for the re-send of what was not
// written.
func (u *upload) rewound() (io.ReadCloser, error) {
	body, err := u.again()
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.source, u.closed, u.err = body, false, nil
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

// Close closes the caller's body. It may run while Read does.
func (u *upload) Close() error {
	u.mu.Lock()
	u.closed = true
	source := u.source
	u.mu.Unlock()
	return source.Close()
}

// turn gives one side the time that a body may stand still, and returns the body.
func (u *upload) turn(callers bool) io.Reader {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.moving, u.callers = true, callers
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
		u.set(u.a.limit)
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
	switch {
	case u.a.timer == nil:
	case d > 0:
		u.due = time.Now().Add(d)
		u.a.timer.Reset(d)
	default:
		u.a.timer.Stop()
	}
}

// timeUp ends the attempt, unless what was sent still is on its way, or the server
// waits for more of it with its response half said. A Read that hangs is helped to its
// end by closing what it reads: net/http waits for it, for ever if need be.
func (u *upload) timeUp() {
	if hanging := u.judge(); hanging != nil {
		_ = hanging.Close()
	}
}

// judge says whose fault it is that the time is up, and ends the attempt. It returns
// the body that the caller's own Read hangs in, or nil.
func (u *upload) judge() (hanging io.Closer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case time.Until(u.due) > 0 || u.over && !u.reading:
		return nil // it was set anew, or stopped, when it had fired already
	case u.over && u.callers && !u.closed:
		u.set(u.a.idle)
		return nil
	case !u.over && !u.callers && u.leaving():
		u.set(u.a.limit)
		return nil
	case u.over:
	case u.callers:
		u.late, hanging = theCaller, u.source
		if kept, ok := u.source.(*replayReader); ok {
			hanging = kept.r // no attempt will follow
		}
	case u.moving:
		u.late = theServer
	}
	u.over = true
	u.a.cancel()
	return hanging
}

// leaving reports whether the system has less to send than when it was last asked,
// and something still: then the line is slow, and not the server. It is called with
// mu held.
func (u *upload) leaving() bool {
	conn := u.a.guard.Conn()
	if conn == nil {
		return false
	}
	n, _ := sendqueue.Len(conn)
	before := u.queued
	u.queued = n
	return n > 0 && (before == 0 || n < before)
}

// leave takes the timer away from the upload, which may go on: the response is
// there.
func (u *upload) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
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
var errCallerStalled = errors.New("it gave nothing for too long")

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
