package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/forbear-go/forbear/bench/console/seed"
)

// Someone on call finds the endpoint that is stuck, and why. An operator then sends all
// that died there again, watches it drain, and settles a key whose outcome is unknown.
func TestWalk(t *testing.T) {
	for _, v := range views() {
		t.Run(v.String(), func(t *testing.T) {
			in := staff(t, copied(t))
			r := in.receive(t)
			in.fail(t)
			who := in.reader
			if v.operator {
				who = in.operator
			}
			b := signIn(t, in.instance, who, v.look)
			explain(b)
			if v.operator {
				redrive(b, r)
				settle(b)
			} else if b.has("Redrive all that match") || b.has("Reveal") {
				t.Error("a reader is offered what only an operator may do")
			}
			b.accessible()
			b.quiet()
		})
	}
}

// explain goes from the first page to the endpoint that is stuck, to why its calls
// stopped, and to its dead letters.
func explain(b *tab) {
	b.t.Helper()
	b.worst("webhook:" + seed.Stuck)
	b.press("webhook:" + seed.Stuck)
	b.until("document.querySelector('h1').innerText === 'webhook:" + seed.Stuck + "'")
	b.untilText("http_503")
	b.do(chromedp.Evaluate("for (const d of document.querySelectorAll('details')) d.open = true; document.querySelector('a[href^=\"/why/\"]').click()", nil))
	b.untilText("What would have to be different")
	b.do(chromedp.NavigateBack())
	b.until(named("The endpoint " + seed.Stuck))
	b.press("The endpoint " + seed.Stuck)
	b.untilText("Failing since")
	b.press("dead letters")
	b.until("document.querySelectorAll('tbody th a[href^=\"/dead-letters/\"]').length === 50")
}

// worst waits until the first row is that of a dependency. Rows keep their places; a page
// that is live says when others are worse.
func (b *tab) worst(dependency string) {
	b.t.Helper()
	first := "document.querySelector('tbody tr th').innerText.trim() === " + quote(dependency)
	b.until(first + " || " + named("order them anew"))
	if b.eval(first) != "true" {
		b.press("order them anew")
		b.until(first)
	}
}

// redrive sends all that match again, and watches without asking for the page again.
func redrive(b *tab, r *receiver) {
	b.t.Helper()
	r.well.Store(true)
	b.press("Redrive all that match")
	b.untilText(fmt.Sprintf("Redrive %d letters?", world.StuckDead))
	b.do(chromedp.SetValue("input[name=rate]", "100", chromedp.ByQuery))
	b.press("Redrive")
	b.until("location.pathname.startsWith('/redrives/')")
	before, _ := b.sent()
	b.until("document.querySelector('#redrive-state').innerText.trim() === 'done'")
	if got := b.eval("document.querySelector('#redrive-progress .good').innerText"); got != fmt.Sprint(world.StuckDead) {
		b.t.Errorf("%s letters were delivered, want %d", got, world.StuckDead)
	}
	if n := r.received.Load(); n < int64(world.StuckDead) {
		b.t.Errorf("%d messages were received, want %d", n, world.StuckDead)
	}
	for _, asked := range beyond(b, len(before)) {
		if asked.kind == "Document" || strings.Contains(asked.url, "/redrives/") && asked.kind != "EventSource" {
			b.t.Errorf("the page asked for %s while it drained", asked.url)
		}
	}
}

func beyond(b *tab, n int) []request { all, _ := b.sent(); return all[n:] }

// settle says that the first operation which is held was done.
func settle(b *tab) {
	b.t.Helper()
	b.press("Keys held")
	b.until("document.querySelector('h1').innerText === 'Keys held'")
	b.do(chromedp.Evaluate("document.querySelector('tbody th a').click()", nil))
	b.untilText("its outcome is unknown")
	form := "form:has(input[name=outcome][value=done]) "
	b.do(chromedp.SendKeys(form+"input[name=status]", "201", chromedp.ByQuery),
		chromedp.SendKeys(form+"input[name=why]", "seen in the ledger", chromedp.ByQuery))
	b.press("It was done")
	b.until("document.querySelector('#status').innerText !== '' || document.body.innerText.includes('there is nothing to settle')")
	b.press("Keys held")
	b.until(fmt.Sprintf("document.querySelectorAll('tbody th a').length === %d", world.Held-1))
}
