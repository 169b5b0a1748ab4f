package idempotency

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// smallBody is read at once, in bytes; what is larger comes in under the bounds
	// of [room].
	smallBody = 16 << 10
	// block is by how much a large body grows, in bytes. Blocks stay where they are
	// until the body has ended: a buffer that doubled would leave as much for the
	// collector.
	block = 64 << 10
	// bodyTime bounds the reading of a small body, and that of a large one, which
	// begins anew after each wait for room.
	bodyTime = 10 * time.Second
)

// What a body can be refused for, beside the errors of reading it.
var (
	errTooLarge   = errors.New("body too large")
	errOverloaded = errors.New("too many large bodies")
	errStalled    = errors.New("body paused or took too long")
)

// body reads the whole body of a principal's request, of at most h.MaxRequest
// bytes. A body whose declared length is larger is not read at all.
func (h *handler) body(w http.ResponseWriter, r *http.Request, principal string) ([]byte, error) {
	if r.ContentLength > h.MaxRequest {
		return nil, errTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	in := &timedReader{r.Body, http.NewResponseController(w), h.BodyIdle, time.Now().Add(bodyTime)}
	body, err := h.whole(r.Context(), in, r.ContentLength, principal)
	if err == nil {
		// After an error the deadline stays: without it the server would wait for the
		// rest before it responds.
		_ = in.control.SetReadDeadline(time.Time{})
	}
	return body, err
}

// whole reads a body to its end. length is the declared one; negative: none.
func (h *handler) whole(ctx context.Context, in *timedReader, length int64, principal string) ([]byte, error) {
	small := min(smallBody, h.MaxRequest+1)
	var buf bytes.Buffer
	if length > 0 {
		buf.Grow(int(min(length, small)) + bytes.MinRead)
	}
	n, err := io.Copy(&buf, io.LimitReader(in, small))
	switch {
	case err != nil || n < small:
		return buf.Bytes(), err
	case n > h.MaxRequest:
		return nil, errTooLarge
	}
	own := h.room.enter(principal)
	defer own.leave()
	return h.large(ctx, in, own, buf.Bytes())
}

// large reads the rest of a body that begins with first. It grows as bytes arrive,
// whatever length was declared.
func (h *handler) large(ctx context.Context, in *timedReader, own *share, first []byte) ([]byte, error) {
	in.until = time.Now().Add(bodyTime)
	blocks, length := [][]byte{first}, int64(len(first))
	for {
		waited, err := own.grow(ctx, block)
		if err != nil {
			return nil, err
		}
		if waited {
			in.until = time.Now().Add(bodyTime)
		}
		// The first byte beyond the limit is read, and those after it are not.
		b := make([]byte, min(block, h.MaxRequest+1-length))
		n, err := fill(in, b)
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

// timedReader reads a request's body, which must neither stand still nor take too
// long. On a server without deadlines, such as a test's, nothing bounds the sender.
type timedReader struct {
	from    io.Reader
	control *http.ResponseController
	idle    time.Duration
	until   time.Time // by when all must have come
}

// Read implements [io.Reader].
func (b *timedReader) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.idle)
	if b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline)
	n, err := b.from.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errStalled
	}
	return n, err
}
