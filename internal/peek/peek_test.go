//forbear:plain nothing runs at once
package peek_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/forbear-go/forbear/internal/peek"
)

// source is a body that remembers that it was closed.
type source struct {
	io.Reader
	closed bool
}

func (s *source) Close() error { s.closed = true; return nil }

func TestBody(t *testing.T) {
	cut := errors.New("cut")
	for _, tc := range []struct {
		name, text string
		err        error
		head       string
		whole      bool
	}{
		{"empty", "", nil, "", true},
		{"short", "abc", nil, "abc", true},
		{"as long as the limit", "abcd", nil, "abcd", true},
		{"longer", "abcdef", nil, "abcd", false},
		{"cut short", "abc", cut, "abc", false},
		{"cut behind the limit", "abcdef", cut, "abcd", false},
	} {
		text := io.Reader(strings.NewReader(tc.text))
		if tc.err != nil {
			text = io.MultiReader(text, iotest.ErrReader(tc.err))
		}
		body := &source{Reader: text}
		head, whole, again, err := peek.Body(body, 4)
		if string(head) != tc.head || whole != tc.whole || err != nil && (err != tc.err || len(tc.text) > 4) {
			t.Errorf("%s: %q, whole %v, %v", tc.name, head, whole, err)
		}
		all, err := io.ReadAll(again)
		if string(all) != tc.text || err != tc.err {
			t.Errorf("%s: again %q, %v; want %q, %v", tc.name, all, err, tc.text, tc.err)
		}
		if _ = again.Close(); !body.closed {
			t.Errorf("%s: the body was left open", tc.name)
		}
	}
}
