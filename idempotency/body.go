package idempotency

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// smallBody is read at once, in bytes; what is larger comes in under the bounds
// of [room].
const smallBody = 16 << 10

// smallBodyTime bounds the reading of a small body, and of the beginning of any other.
const smallBodyTime = 10 * time.Second

// What a body can be refused for, beside the errors of reading it.
var (
	errTooLarge   = errors.New("body too large")
	errOverloaded = errors.New("too many large bodies")
	errStalled    = errors.New("body stood still, or took too long")
	errLonger     = errors.New("body longer than it says")
)

// body reads the whole body of a principal's request, of at most h.MaxRequest
// bytes. One that says that it is larger is not read at all.
func (h *handler) body(w http.ResponseWriter, r *http.Request, principal string) ([]byte, error) {
	if r.ContentLength > h.MaxRequest {
		return nil, errTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	in := newBodyReader(w, r.Body, h.BodyIdle, smallBodyTime)
	body, err := h.whole(in, r, principal)
	if err == nil {
		// After an error the deadline stays: without it the server would wait for the
		// rest before it responds.
		_ = in.control.SetReadDeadline(time.Time{})
	}
	return body, err
}

// whole reads a body to its end.
func (h *handler) whole(in *bodyReader, r *http.Request, principal string) ([]byte, error) {
	if r.ContentLength > 0 && r.ContentLength < smallBody {
		return exactly(in, int(r.ContentLength))
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(smallBody + bytes.MinRead)
	}
	small := min(smallBody, h.MaxRequest+1)
	n, err := io.Copy(&buf, io.LimitReader(in, small))
	if err != nil || n < small {
		return buf.Bytes(), err
	}
	if n > h.MaxRequest {
		return nil, errTooLarge
	}
	own := h.room.enter(principal, in)
	body, err := h.large(r.Context(), own, buf.Bytes())
	if own.giveBack() {
		return nil, errOverloaded
	}
	return body, err
}

// block is by how much a large body grows, in bytes. Blocks stay where they are
// until the body has ended: one that doubled would leave as much for the collector.
const block = 64 << 10

// large reads what is left of a body that has begun with so much. It grows as
// bytes arrive, whatever length the caller has named.
func (h *handler) large(ctx context.Context, own *share, first []byte) ([]byte, error) {
	own.in.until = time.Now().Add(largeBodyTime)
	blocks, length := [][]byte{first}, int64(len(first))
	for {
		waited, err := own.grow(ctx, block)
		if err != nil {
			return nil, err
		}
		if waited {
			own.in.until = time.Now().Add(largeBodyTime)
		}
		// The byte that is too many is read, and those after it are not.
		b := make([]byte, min(block, h.MaxRequest+1-length))
		n, err := fill(own.in, b)
		blocks, length = append(blocks, b[:n]), length+int64(n)
		switch {
		case length > h.MaxRequest:
			return nil, errTooLarge
		case err == io.EOF: // bare: a body that broke off has another error
			return bytes.Join(blocks, nil), nil
		case err != nil:
			return nil, err
		}
	}
}

// fill reads until b is full. Its error is r's own: [io.ReadFull] has the same one
// for a body that has ended and for one that broke off.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}

// exactly reads a body that says how long it is, with one allocation.
func exactly(r io.Reader, length int) ([]byte, error) {
	body := make([]byte, 0, length+1) // with room to see that it ends there
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > length:
			return nil, errLonger
		case errors.Is(err, io.EOF) && len(body) == length:
			return body, nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
	}
}
