package idempotency

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/unstored"
)

// Response is a stored response.
type Response struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
	// Tombstone says that Body is missing: it was too large, or streamed.
	Tombstone string `json:"tombstone,omitempty"`
}

// The values of [Response.Tombstone].
const (
	Oversize = "oversize"
	Streamed = "streamed"
)

// The limits of a response that does not come from a handler, in bytes. That of
// the body is a handler's by default.
const (
	maxGivenBody   = 1 << 20
	maxGivenHeader = 16 << 10
)

// Check reports everything that is wrong with a response that an operator gives
// in the place of one that was lost (see [Resolution]): duplicates receive it for
// good. Its status is 200 to 499, its body at most 1 MiB, its headers at most
// 16 KiB, and none of them belongs to one exchange or is a credential. Errors do
// not repeat values.
func (a *Response) Check() error {
	var errs []error
	if a.Status < 200 || a.Status > 499 {
		errs = append(errs, fmt.Errorf("status %d is not final: want 200 to 499", a.Status))
	}
	if len(a.Body) > 0 && (a.Status == http.StatusNoContent || a.Status == http.StatusNotModified) {
		errs = append(errs, fmt.Errorf("status %d has no body", a.Status))
	}
	if len(a.Body) > maxGivenBody {
		errs = append(errs, errors.New("body is larger than 1 MiB"))
	}
	size := 0
	for name, values := range a.Header {
		if unstored.Is(name) {
			errs = append(errs, fmt.Errorf("header %s is never stored", name))
		}
		for _, value := range values {
			if size += len(name) + len(value); !isLine(name, value) {
				errs = append(errs, fmt.Errorf("header %.40q cannot be sent", name))
			}
		}
	}
	if size > maxGivenHeader {
		errs = append(errs, errors.New("headers are larger than 16 KiB"))
	}
	return errors.Join(errs...)
}

// isLine reports whether a header of that name and value is read as it is written.
func isLine(name, value string) bool {
	text := name + ": " + value + "\r\n\r\n"
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(text))).ReadMIMEHeader()
	return err == nil && len(h) == 1 && !strings.Contains(name, " ") && slices.Equal(h[textproto.CanonicalMIMEHeaderKey(name)], []string{value})
}
