package forbear_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
)

// An error of http.Client answers Timeout by asking its transport's error, and
// looks no deeper than that.
func TestErrorIsATimeoutWhenItsLastErrorIs(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("attempt: %w", context.DeadlineExceeded), true},
		{io.EOF, false},
		{nil, false},
	} {
		e := &url.Error{Op: "Get", URL: "http://payments.test/", Err: &forbear.Error{Reason: reason.Exhausted, Err: tc.err}}
		if got := e.Timeout(); got != tc.want {
			t.Errorf("%v: Timeout() = %v", tc.err, got)
		}
		if !errors.Is(e, forbear.ErrExhausted) {
			t.Errorf("%v lost its reason", e)
		}
	}
}
