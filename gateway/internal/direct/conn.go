package direct

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"time"

	"github.com/forbear-go/forbear/internal/mismatch"
	"github.com/forbear-go/forbear/internal/resend"
)

// errUnwritten is for a request of which not a byte went out on a connection that had
// been used before.
type errUnwritten struct{ error }

// errLongHeaders is for a response whose headers have no end.
var errLongHeaders = errors.New("the headers of the response are longer than 10 MiB")

// maxHeaders bounds the headers of a response with those before it, in bytes.
const maxHeaders = 10 << 20

// maxFirst is how much of a server's first bytes is looked at: it may speak another
// protocol.
const maxFirst = 16

// maxInterim bounds the interim responses where nothing looks at them.
const maxInterim = 5

// conn is a connection. It belongs to one request at a time.
type conn struct {
	net.Conn
	t      *Transport
	at     place
	since  time.Time // idle since
	reused bool
	wrote  int64 // bytes of the present request; see upload
	broke  error // why no more can be written; see upload
	left   int64 // bytes that may still be read
	line   *line // what the system knows of it
	r      *bufio.Reader
	w      *bufio.Writer
	cut    func() // ends what reads and writes
}

func newConn(t *Transport, at place, raw net.Conn) *conn {
	line := raw // that the system knows
	if s, ok := raw.(*tls.Conn); ok {
		line = s.NetConn()
	}
	c := &conn{Conn: raw, t: t, at: at, line: lineOf(line)}
	c.r, c.w = bufio.NewReader(c), bufio.NewWriter(c)
	c.cut = func() { _ = raw.SetDeadline(time.Unix(1, 0)) }
	return c
}

// Read bounds what is read.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHeaders
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// Write counts what is written.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wrote += int64(n)
	c.broke = err
	return n, err
}

// ReadFrom copies a body past the buffer.
func (c *conn) ReadFrom(body io.Reader) (int64, error) {
	n, err := io.Copy(c.Conn, body)
	c.wrote += n
	c.broke = err
	return n, err
}

// exchange sends a request and reads the response up to its body. The connection is
// gone after an error, and belongs to the body otherwise.
func (c *conn) exchange(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	ctx := r.Context()
	stop := context.AfterFunc(ctx, c.cut)
	c.wrote, c.broke, c.left = 0, nil, maxHeaders
	var up *upload
	var resp *http.Response
	var err error
	if hasBody(r) {
		up = begin(c, r)
	} else if err = r.Write(c.w); err == nil {
		err = c.w.Flush()
	}
	if err == nil {
		resp, err = c.receive(r, trace)
	}
	if err != nil {
		stop()
		_ = c.Close()
		return nil, c.failed(ctx, up, err)
	}
	c.left = math.MaxInt64
	if s, ok := c.Conn.(*tls.Conn); ok {
		state := s.ConnectionState()
		resp.TLS = &state
	}
	b := &body{ReadCloser: resp.Body, c: c, ctx: ctx, stop: stop, up: up, keep: !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols}
	if resp.Body == http.NoBody {
		b.end(nil)
		return resp, nil
	}
	resp.Body = b
	return resp, nil
}

// uploadEnds is for how long a failure waits for what sends the body to end: it does when
// it writes next, and knows more of the failure then. One that waits for the caller to
// send more must not delay the failure.
const uploadEnds = 20 * time.Millisecond

// failed returns what the caller gets for a failure on a connection that is closed: the
// end of the context explains any, and a body that broke off explains the rest.
func (c *conn) failed(ctx context.Context, up *upload, err error) error {
	ended := up == nil || up.ended(uploadEnds)
	if up != nil && ended {
		if fault := up.fault.Load(); fault != nil || errors.Is(err, os.ErrDeadlineExceeded) && up.err != nil {
			err = up.err
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ended && c.reused && c.wrote == 0 && (up == nil || up.fault.Load() == nil):
		return errUnwritten{err}
	}
	return err
}

// receive reads the headers of a response.
func (c *conn) receive(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	if _, err := c.r.Peek(1); err != nil {
		return nil, c.silent(r, err)
	}
	if !c.reused && !c.at.secure {
		first, _ := c.r.Peek(min(c.r.Buffered(), maxFirst))
		if other := mismatch.Of(first, false); other != "" {
			return nil, other
		}
	}
	if trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	for interim := 0; ; interim++ {
		resp, err := http.ReadResponse(c.r, r)
		switch {
		case err == io.ErrUnexpectedEOF:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err) // as net/http has it
		case resp.StatusCode < 100 || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols:
			return resp, nil
		case trace.Got1xxResponse == nil && interim == maxInterim:
			return nil, errors.New("net/http: too many 1xx informational responses")
		case trace.Got1xxResponse != nil:
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// silent returns the error of a connection that ended before a byte of a response. A
// server that had closed it while it was idle has not seen the request: that is what
// forbear calls a re-send, when the request may be sent again.
func (c *conn) silent(r *http.Request, err error) error {
	if c.reused && resend.Repeatable(r) && (!hasBody(r) || r.GetBody != nil) {
		return resend.Err
	}
	return err
}
