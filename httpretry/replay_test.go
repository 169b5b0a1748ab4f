package httpretry

import (
	"io"
	"strings"
	"testing"
)

// TestReleaseLeavesNoHole: a reader that is behind what an earlier one got gets that, too,
// when there is no other attempt and its upload goes on.
func TestReleaseLeavesNoHole(t *testing.T) {
	const text = "abcdefghij"
	r := newReplay(io.NopCloser(io.MultiReader(strings.NewReader(text))), 4)
	first := r.reader(nil, nil)
	_, _ = io.ReadFull(first, make([]byte, 3))
	if !r.hold() {
		t.Fatal("what is kept is not enough")
	}
	r.next()
	second := r.reader(nil, nil)
	_, _ = first.Read(make([]byte, 6)) // under way when its attempt ended: beyond the limit
	got := make([]byte, 2)
	_, _ = io.ReadFull(second, got)
	if !r.hold() {
		t.Fatal("the beginning was given up")
	}
	r.release()
	rest, err := io.ReadAll(second)
	if string(got)+string(rest) != text || err != nil {
		t.Errorf("got %q, %v, want %q", string(got)+string(rest), err, text)
	}
}
