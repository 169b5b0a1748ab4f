package label_test

import (
	"testing"

	"github.com/forbear-go/forbear/internal/label"
)

func TestControl(t *testing.T) {
	for _, r := range "\x00\n\t\x1f\x7f\u0080\u0085\u009b\u009f\u061c\u200e\u200f\u202a\u202e\u2066\u2069" {
		if !label.Control(r) {
			t.Errorf("%U passes", r)
		}
	}
	for _, r := range " ~a\u00a0ü\u200d\u2028😀\ufffd" {
		if label.Control(r) {
			t.Errorf("%U is refused", r)
		}
	}
}
