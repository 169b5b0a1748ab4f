// Package peek reads the beginning of a body and puts it back. The edges judge a
// message by what it says, and hand it over as if nothing had happened.
package peek

import (
	"bytes"
	"io"
)

// Body reads up to limit bytes of a body; whole is false when there are more. It
// returns what stands for the body from then on: again reads all of it, the error
// that was met at its place included, and closes the body.
func Body(body io.ReadCloser, limit int) (head []byte, whole bool, again io.ReadCloser, err error) {
	head, err = io.ReadAll(io.LimitReader(body, int64(limit)+1))
	rest := io.Reader(body)
	if err != nil {
		rest = broken{err} // the body need not say so twice
	}
	again = &rejoined{io.MultiReader(bytes.NewReader(head), rest), body}
	if len(head) > limit {
		return head[:limit], false, again, err
	}
	return head, err == nil, again, err
}

// rejoined is a body whose beginning was read and put back.
type rejoined struct {
	io.Reader
	io.Closer
}

// broken is the end of a body that broke while its beginning was read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
