//forbear:plain nothing runs at once
package hint_test

import (
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/hint"
)

func TestStricter(t *testing.T) {
	a := forbear.Hint{Floor: 1, Spread: 5, Base: 3, MaxRetries: 4, SameKey: true}
	b := forbear.Hint{Floor: 2, Spread: 1, MaxRetries: 2, Stop: true, NoBackoff: true, LongerDeadline: true}
	want := forbear.Hint{Floor: 2, Spread: 5, Base: 3, MaxRetries: 2, Stop: true, NoBackoff: true, SameKey: true, LongerDeadline: true}
	if got := hint.Stricter(a, b); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := hint.Stricter(b, a); got != want {
		t.Errorf("the other way: got %+v, want %+v", got, want)
	}
	if got := hint.Stricter(forbear.Hint{}, a); got != a {
		t.Errorf("with nothing: got %+v, want %+v", got, a)
	}
}
