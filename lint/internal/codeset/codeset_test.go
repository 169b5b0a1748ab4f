//forbear:plain rules have no goroutines; package lint runs them at once
package codeset

import (
	"slices"
	"testing"
)

func TestString(t *testing.T) {
	tests := []struct {
		set  Set
		want string
	}{
		{Set{}, ""},
		{Of(404), "404"},
		{Of(-1, 700), ""},
		{Range(400, 499).Minus(Of(429)), "400-428, 430-499"},
		{Range(0, 1).Or(Of(16, 63, 64)), "0-1, 16, 63-64"},
	}
	for _, tt := range tests {
		if got := tt.set.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestSet(t *testing.T) {
	s := Range(100, 599).And(Range(590, 700))
	if s.Len() != 10 || !s.Has(590) || s.Has(589) || s.Has(600) || s.Has(-1) || s.Empty() {
		t.Errorf("got %v", s)
	}
	if got := slices.Collect(Of(3, 1, 200).All()); !slices.Equal(got, []int64{1, 3, 200}) {
		t.Errorf("got %v, want the least first", got)
	}
}
