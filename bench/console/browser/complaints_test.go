package browser

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/forbear-go/forbear/bench/console/seed"
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
		moved := b.eval(`new Promise(done => {
			const what = [];
			new PerformanceObserver(l => l.getEntries().forEach(e => what.push(e.value + ': ' + e.sources.map(s => (s.node?.outerHTML ?? s.node?.textContent ?? '').slice(0, 80))))).observe({type: 'layout-shift', buffered: true});
			requestAnimationFrame(() => requestAnimationFrame(() => done(what.join('\n'))));
		})`)
		if moved != "" {
			t.Errorf("%s moved while it was loaded:\n%s", path, moved)
		}
	}
	b.do(network.EmulateNetworkConditions(false, 0, -1, -1))
	in.flaky(t, "ok")
	b.visit("/")
	b.until(calls("flaky") + "?.startsWith('1+')")
	const places = `[...document.querySelectorAll('tbody tr')].map(r => r.querySelector('th').innerText + Math.round(r.getBoundingClientRect().top)).join()`
	before := b.eval(places)
	in.flaky(t, "status/500?times=9", "ok")
	b.until(calls("flaky") + ".startsWith('3+')")
	if after := b.eval(places); after != before {
		t.Errorf("rows moved from %s to %s", before, after)
	}
}

// A bulk act takes all that match, not what a page of the list shows, and nothing else.
func TestBulkTakesAllThatMatch(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	others := in.letters(t, "") - in.letters(t, seed.Stuck)
	b.visit("/dead-letters?destination=" + seed.Stuck)
	if n := b.eval("document.querySelectorAll('input[name=id]').length"); n != "50" {
		t.Fatalf("the page shows %s letters, want fewer than there are", n)
	}
	b.press("Discard all that match")
	b.untilText(fmt.Sprintf("Discard %d letters?", world.StuckDead))
	b.do(chromedp.SendKeys("input[name=why]", "the customer has left", chromedp.ByQuery))
	b.press("Discard")
	b.until("document.querySelector('h1').innerText === 'Dead letters'")
	if left := in.letters(t, seed.Stuck); left != 0 {
		t.Errorf("%d letters that match are left", left)
	}
	if left := in.letters(t, "") - in.letters(t, seed.Stuck); left != others {
		t.Errorf("%d other letters are left, want %d", left, others)
	}
	b.quiet()
}

// Nothing is deleted or canceled by one click: a page asks, and says how many. No link does
// anything at all.
func TestNothingIsDeletedWithoutAQuestion(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	state := func() (s string) {
		for _, path := range []string{"/v1/dead-letters/stats", "/v1/endpoints/stuck", "/v1/messages?endpoint=stuck&state=canceled", "/v1/redrives?limit=5", "/v1/audit?limit=5", "/v1/keys?state=held&limit=5"} {
			s += string(in.call(t, in.operator, "GET", path, ""))
		}
		return s
	}
	before := state()
	for _, tt := range []struct{ page, button string }{
		{"/dead-letters?destination=stuck", "Discard all that match"},
		{"/dead-letters?destination=stuck", "Discard selected"},
		{"/dead-letters?destination=stuck", "Redrive all that match"},
		{"/messages?endpoint=stuck", "Cancel all that match"},
		{"/messages?endpoint=stuck", "Send again all that match"},
	} {
		b.visit(tt.page)
		if tt.button == "Discard selected" {
			b.do(chromedp.Evaluate("document.querySelector('input[name=id]').click()", nil))
		}
		b.press(tt.button)
		b.until("document.querySelector('h1').innerText.endsWith('?')")
		b.press("Do nothing")
		b.until("!document.querySelector('h1').innerText.endsWith('?')")
	}
	b.crawl()
	if after := state(); after != before {
		t.Errorf("before:\n%s\nafter questions that nobody said yes to:\n%s", before, after)
	}
}

// An integer that no float64 holds is shown and copied as it was sent.
func TestLargeIntegersStay(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	for page, show := range map[string]string{"/messages?type=order.created": "Show the payload", "/dead-letters?destination=stuck": "Reveal"} {
		b.visit(page)
		b.do(chromedp.Evaluate("document.querySelector('tbody th a[href^=\"/messages/\"], tbody th a[href^=\"/dead-letters/\"]').click()", nil))
		if b.press(show); b.has(show) {
			b.until("!(" + named(show) + ")")
		}
		b.untilText("9007199254740993")
	}
	b.quiet()
}

// The list leads beyond its first ten thousand rows, and a count is exact there.
func TestRowsBeyondTenThousand(t *testing.T) {
	in := staff(t, copied(t))
	b := signIn(t, in.instance, in.operator, desk)
	for _, path := range []string{"/dead-letters?state=any", "/messages"} {
		got := b.eval(fmt.Sprintf(`(async () => {
			const ids = new Set();
			for (let at = %s, n = 0; at && ids.size < 10100 && n < 1000; n++) {
				const page = new DOMParser().parseFromString(await (await fetch(at)).text(), 'text/html');
				for (const row of page.querySelectorAll('tbody th a[href^="/messages/"], tbody th a[href^="/dead-letters/"]')) ids.add(row.innerText);
				at = [...page.querySelectorAll('a')].find(a => a.innerText === 'Older')?.getAttribute('href');
			}
			return ids.size;
		})()`, quote(path)))
		if n, _ := strconv.Atoi(got); n < 10_100 {
			t.Errorf("%s leads to %s rows", path, got)
		}
	}
	b.visit("/dead-letters")
	b.press("Redrive all that match")
	b.until("document.querySelector('h1').innerText.endsWith('?')")
	if got, want := b.eval("document.querySelector('h1').innerText"), in.letters(t, ""); strings.ReplaceAll(got, ",", "") != fmt.Sprintf("Redrive %d letters?", want) {
		t.Errorf("%s, want %d", got, want)
	}
}

// Each of two instances says which one's figures it shows, and leads to the other.
func TestInstancesAreNamed(t *testing.T) {
	database := pgtest.Database(t)
	one, two := serve(t, database), serve(t, database)
	const at = "[...document.querySelectorAll('p')].find(p => p.innerText.startsWith('Live figures are'))?.querySelector"
	name := func(b *tab) string {
		b.until(at + "('b')")
		return b.eval(at + "('b').innerText")
	}
	b := open(t, one.admin, desk)
	b.visit("/")
	first := name(b)
	b.until(at + "('a') || location.reload()") // its heartbeat may come later
	if b.eval(at+"('a').href") != two.admin+"/" {
		t.Errorf("the page of %s leads to %s, want %s", one.admin, b.eval(at+"('a').href"), two.admin)
	}
	b.do(chromedp.Evaluate(at+"('a').click()", nil))
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
