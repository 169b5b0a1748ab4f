package idempotency

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// smallBody is read at once, in bytes. Of those who send more, only
	// largeBodies are read at a time: otherwise a thousand requests that are
	// too large, and do not say so, would take a thousand times the limit
	// before they are refused.
	smallBody   = 16 << 10
	largeBodies = 64
	// largeBodyTime bounds the reading of a large body and the wait for it, so
	// that slow senders do not keep the others out.
	largeBodyTime = 10 * time.Second
)

// What a body can be refused for, beside the errors of reading it.
var (
	errTooLarge   = errors.New("body too large")
	errOverloaded = errors.New("too many large bodies")
	errLonger     = errors.New("body longer than it says")
)

// body reads the whole body of a request, of at most h.MaxRequest bytes. One
// that says that it is larger is not read at all.
func (h *handler) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > h.MaxRequest {
		return nil, errTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > 0 && r.ContentLength < smallBody {
		return exactly(r.Body, int(r.ContentLength))
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(smallBody + bytes.MinRead)
	}
	small := min(smallBody, h.MaxRequest+1)
	n, err := io.Copy(&buf, io.LimitReader(r.Body, small))
	if err != nil || n < small {
		return buf.Bytes(), err
	}
	if n <= h.MaxRequest {
		timeout := time.NewTimer(largeBodyTime)
		defer timeout.Stop()
		select {
		case h.large <- struct{}{}:
			defer func() { <-h.large }()
		case <-timeout.C:
			return nil, errOverloaded
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		// A server without deadlines, such as a test's, has the sender's pace.
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(largeBodyTime)) == nil {
			defer func() { _ = control.SetReadDeadline(time.Time{}) }()
		}
		rest := min(h.MaxRequest+1-n, 1<<20)
		if r.ContentLength > 0 {
			rest = r.ContentLength - n
		}
		buf.Grow(int(rest) + bytes.MinRead) // once, and not by doubling
		_, err = io.Copy(&buf, io.LimitReader(r.Body, h.MaxRequest+1-n))
	}
	if err == nil && int64(buf.Len()) > h.MaxRequest {
		return nil, errTooLarge
	}
	return buf.Bytes(), err
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
