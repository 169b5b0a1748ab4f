package idempotency

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A body that says how long it is must be that long.
func TestExactly(t *testing.T) {
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "its end with its data": iotest.DataErrReader,
	} {
		for text, want := range map[string]error{"abc": nil, "ab": io.ErrUnexpectedEOF, "abcd": errLonger, "": io.ErrUnexpectedEOF} {
			got, err := exactly(wrap(strings.NewReader(text)), 3)
			if !errors.Is(err, want) || want == nil && string(got) != text {
				t.Errorf("%s: %q of three bytes: %q, %v; want %v", name, text, got, err, want)
			}
		}
		cut := errors.New("cut off")
		if _, err := exactly(wrap(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(cut))), 3); !errors.Is(err, cut) {
			t.Errorf("%s: %v, want the connection's error", name, err)
		}
	}
}
