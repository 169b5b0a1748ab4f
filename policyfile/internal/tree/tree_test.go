//forbear:plain files are read on one goroutine
package tree

import "testing"

func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"numRetries", "num_retries", true},
		{"NumRetries", "NUM-RETRIES", true},
		{"retries", "retriesx", false},
		{"retries_", "retries", true},
		{"a", "b", false},
	} {
		if got := Same(tt.a, tt.b); got != tt.want {
			t.Errorf("Same(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}
