package direct

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"time"

	"github.com/forbear-go/forbear/internal/resend"
)

// errUnwritten is for a request of which not a byte went out on a connection that had
// been used before.
var errUnwritten = errors.New("nothing was written")

// errLongHeaders is for a response whose headers have no end.
var errLongHeaders = errors.New("the headers of the response are longer than 10 MiB")

// maxHeaders bounds the headers of a response with those before it, in bytes.
const maxHeaders = 10 << 20

// maxInterim bounds the interim responses that no one looks at.
const maxInterim = 5

// conn is a connection. It belongs to one request at a time.
type conn struct {
	net.Conn
	t       *Transport
	address string
	since   time.Time // idle since
	reused  bool
	wrote   int64 // bytes of the present request
	left    int64 // bytes that may still be read
	r       *bufio.Reader
	w       *bufio.Writer
	cut     func() // ends what reads and writes
}

func newConn(t *Transport, address string, raw net.Conn) *conn {
	c := &conn{Conn: raw, t: t, address: address}
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
	return n, err
}

// exchange sends a request and reads the response up to its body. The connection is
// gone after an error, and belongs to the body otherwise.
func (c *conn) exchange(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	ctx := r.Context()
	stop := context.AfterFunc(ctx, c.cut)
	c.wrote, c.left = 0, maxHeaders
	resp, err := c.send(r, trace)
	if err != nil {
		stop()
		_ = c.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	c.left = math.MaxInt64
	b := &body{ReadCloser: resp.Body, c: c, ctx: ctx, stop: stop, keep: !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols}
	if resp.Body == http.NoBody {
		b.end(nil)
		return resp, nil
	}
	resp.Body = b
	return resp, nil
}

// send writes the request and reads the headers of its response.
func (c *conn) send(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	err := r.Write(c.w)
	if err == nil {
		err = c.w.Flush()
	}
	if err != nil {
		if c.reused && c.wrote == 0 {
			return nil, errUnwritten
		}
		return nil, err
	}
	if _, err := c.r.Peek(1); err != nil {
		return nil, c.silent(r, err)
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
	if c.reused && resend.Repeatable(r) {
		return resend.Err
	}
	return err
}
