package browser

import (
	"fmt"
	"testing"
	"time"
)

// The last calls stay where they are while the page is live, and one that a reader has
// opened stays open when others come.
func TestCallsStayWhileLive(t *testing.T) {
	in := staff(t, copied(t))
	in.flaky(t, "status/503?times=2", "status/503?times=1", "status/500?times=9")
	b := signIn(t, in.instance, in.operator, look{1280, 900, false})
	b.visit("/now/flaky")
	b.until("document.querySelectorAll('details.call').length === 3")
	b.eval("document.querySelectorAll('details.call')[1].open = true")
	for n := range 3 {
		in.flaky(t, "status/503?times=1")
		b.until(fmt.Sprintf("document.querySelectorAll('details.call').length === %d && document.querySelectorAll('details.call[open]').length === 1", 4+n))
	}
	time.Sleep(5 * time.Second)
	if got := b.eval("document.querySelectorAll('details.call').length + ' ' + document.querySelectorAll('details.call[open]').length"); got != "6 1" {
		t.Errorf("got %s calls and open ones, want 6 1", got)
	}
	b.quiet()
}
