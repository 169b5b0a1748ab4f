package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// calls is the expression for the text of a dependency's cell of calls, without spaces.
func calls(dependency string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('table.now tbody tr')].find(r => r.querySelector('th').innerText.trim() === %s)?.querySelector('[id$="-calls"]').innerText.replace(/\s/g, '')`, quote(dependency))
}

// A page that is live has one stream, and asks for nothing else; a paused one has none.
// Another live tab is the clock: when it has seen a call, this one could have.
func TestNothingPolls(t *testing.T) {
	in := serve(t, t.TempDir()+"/forbear.db")
	in.flaky(t, "ok")
	clock, b := open(t, in.admin, desk), open(t, in.admin, desk)
	for _, tab := range []*tab{clock, b} {
		tab.visit("/")
		tab.until(calls("flaky") + ".startsWith('1+0')")
	}
	b.until("performance.getEntriesByType('resource').length > 0")
	loaded, _ := b.sent()
	for n := 2; n <= 4; n++ {
		in.flaky(t, "ok")
		b.until(fmt.Sprintf("%s.startsWith('%d+0')", calls("flaky"), n))
	}
	after, streams := b.sent()
	if len(after) != len(loaded) || streams != 1 {
		t.Errorf("%d streams; a live page asked for %v", streams, after[len(loaded):])
	}
	b.press("Pause")
	b.until(named("Go live"))
	paused, _ := b.sent()
	for n := 5; n <= 7; n++ {
		in.flaky(t, "ok")
		clock.until(fmt.Sprintf("%s.startsWith('%d+0')", calls("flaky"), n))
	}
	if after, streams := b.sent(); streams != 0 || len(after) != len(paused) {
		t.Errorf("%d streams; a paused page asked for %v", streams, after[len(paused):])
	}
	if got := b.eval(calls("flaky")); !strings.HasPrefix(got, "4+0") {
		t.Errorf("a paused page moved to %s", got)
	}
	b.quiet()
}

// A page whose server has gone, or refuses, stays as it is and says so.
func TestErrorKeepsThePage(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	b.visit("/messages")
	b.do(chromedp.Evaluate(`window.stays = true; document.querySelector('input[name=since]').type = 'text'; document.querySelector('input[name=since]').value = 'not a time'; document.querySelector('form[role=search]').requestSubmit()`, nil))
	b.until("document.querySelector('#status').innerText !== ''")
	if got := b.eval("[location.pathname + location.search, window.stays, document.querySelector('input[name=since]').value, document.querySelectorAll('tbody tr').length > 10].join()"); got != "/messages,true,not a time,true" {
		t.Errorf("after an error: %s", got)
	}
	t.Log(b.eval("document.querySelector('#status').innerText"))
}

// What is not ours does not run: not as a script in the page, nor by an attribute.
func TestPolicyForbidsInlineScripts(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	for _, path := range b.crawl().Pages {
		b.visit(path)
		if n := b.eval(`document.querySelectorAll('script:not([src]), style, [style], [onclick], [onload], [onsubmit], [onchange]').length`); n != "0" {
			t.Errorf("%s has %s scripts or styles in it", path, n)
		}
	}
	b.quiet()
	b.do(chromedp.Evaluate(`window.ran = 0; addEventListener('securitypolicyviolation', () => window.violations = (window.violations ?? 0) + 1);
		const s = document.createElement('script'); s.textContent = 'window.ran++'; document.body.append(s);
		document.body.insertAdjacentHTML('beforeend', '<img src=/nowhere onerror="window.ran++"><button id=inline onclick="window.ran++">x</button>');
		document.querySelector('#inline').click()`, nil))
	b.until("window.violations >= 2")
	if ran := b.eval("window.ran"); ran != "0" {
		t.Errorf("%s inline scripts ran", ran)
	}
}

// A reader sees no button that writes, and what an operator's buttons send is refused.
func TestReaderCannotWrite(t *testing.T) {
	in := staff(t, copied(t))
	all := signIn(t, in.instance, in.operator, desk).crawl()
	if len(all.Writes) < 10 {
		t.Fatalf("an operator writes to %q", all.Writes)
	}
	anyone := open(t, serve(t, copied(t)).admin, desk) // no token is demanded, so no one has signed in
	for name, b := range map[string]*tab{"reader": signIn(t, in.instance, in.reader, desk), "anyone": anyone} {
		found := b.crawl()
		if len(found.Pages) < len(all.Pages)/2 || len(found.Writes) > 0 {
			t.Errorf("%s sees the pages %q, and forms to %q", name, found.Pages, found.Writes)
		}
		for _, path := range all.Writes {
			if got := b.eval(fmt.Sprintf(`fetch(%s, {method: 'POST', body: new URLSearchParams({why: 'x', sure: 'yes'})}).then(r => r.status)`, quote(path))); got != "403" {
				t.Errorf("POST %s as %s: %s", path, name, got)
			}
		}
	}
}

// On a slow network nothing moves once it is there, and live figures stay in their rows.
func TestListsDoNotJump(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	b.do(network.EmulateNetworkConditions(false, 300, 40<<10, 40<<10))
	for _, path := range []string{"/", "/messages", "/dead-letters", "/keys"} {
		b.visit(path)
		b.until("document.readyState === 'complete' && document.querySelectorAll('tbody tr').length > 0")
		if moved := b.eval(`new Promise(done => { let sum = 0; new PerformanceObserver(l => l.getEntries().forEach(e => sum += e.value)).observe({type: 'layout-shift', buffered: true}); requestAnimationFrame(() => requestAnimationFrame(() => done(sum))) })`); moved != "0" {
			t.Errorf("%s moved by %s while it was loaded", path, moved)
		}
	}
}

// Each of two instances says which one's figures it shows, and leads to the other.
func TestInstancesAreNamed(t *testing.T) {
	database := pgtest.Database(t)
	one, two := serve(t, database), serve(t, database)
	name := func(b *tab) string {
		b.until("document.querySelector('#instances b')")
		return b.eval("document.querySelector('#instances b').innerText")
	}
	b := open(t, one.admin, desk)
	b.visit("/")
	first := name(b)
	b.until("document.querySelector('#instances a') || location.reload()") // its heartbeat may come later
	if b.eval("document.querySelector('#instances a').href") != two.admin+"/" {
		t.Errorf("the page of %s leads to %s, want %s", one.admin, b.eval("document.querySelector('#instances a').href"), two.admin)
	}
	b.do(chromedp.Evaluate("document.querySelector('#instances a').click()", nil))
	b.until("location.origin === " + quote(two.admin))
	if second := name(b); second == first || first == "" {
		t.Errorf("both instances are called %q", first)
	}
}

// Where the browser gives a page no clipboard, as without TLS, copying works all the same.
func TestCopyWithoutTLS(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	b.visit("/messages?endpoint=stuck")
	b.do(chromedp.Evaluate("document.querySelector('tbody a').click()", nil))
	b.until("document.querySelector('[data-copy]')")
	b.do(chromedp.Evaluate("delete Navigator.prototype.clipboard", nil), chromedp.Click("[data-copy]", chromedp.ByQuery))
	b.untilText("Copied.")
	want := b.eval("document.getElementById(document.querySelector('[data-copy]').dataset.copy).textContent")
	b.do(chromedp.Evaluate("const field = document.createElement('textarea'); document.body.append(field); field.focus()", nil),
		input.DispatchKeyEvent(input.KeyRawDown).WithKey("v").WithModifiers(input.ModifierCtrl).WithCommands([]string{"paste"}))
	b.until("document.querySelector('textarea:focus').value !== ''")
	if got := b.eval("document.querySelector('textarea:focus').value"); got != want {
		t.Errorf("pasted %q, want %q", got, want)
	}
}
