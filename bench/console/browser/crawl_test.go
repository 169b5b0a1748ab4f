package browser

import (
	"encoding/json"
	"slices"
	"testing"
)

// site is what the links of a console lead to: a page of each kind, by its address, and
// where forms that write are sent.
type site struct{ Pages, Writes []string }

// crawl follows the links from the tabs on. An address with another id is of the same kind.
func (b *tab) crawl() site {
	b.t.Helper()
	b.visit("/")
	var s site
	if err := json.Unmarshal([]byte(b.eval(`(async () => {
		const todo = ['/', '/now/flaky', '/messages?endpoint=stuck&state=dead', '/dead-letters?destination=stuck', '/keys', '/no-such-page'], kinds = new Set(), pages = [], writes = new Set();
		while (todo.length) {
			const url = new URL(todo.shift(), location), kind = url.pathname.replace(/^\/(now|why|endpoints)\/[^/]+/, '/$1/*').replace(/\/[^/]*[0-9:%][^/]*/, '/*');
			if (url.origin !== location.origin || url.searchParams.has('format') || kind.startsWith('/static') || kinds.has(kind)) continue;
			kinds.add(kind);
			pages.push(url.pathname + url.search);
			const page = new DOMParser().parseFromString(await (await fetch(url)).text(), 'text/html');
			for (const a of page.querySelectorAll('a[href]')) todo.push(new URL(a.getAttribute('href'), url).href);
			for (const f of page.querySelectorAll('form[method=post]')) writes.add(new URL(f.getAttribute('action') ?? '', url).pathname);
			for (const f of page.querySelectorAll('form[method=post] button[formaction]:not([formmethod=get])')) writes.add(new URL(f.getAttribute('formaction'), url).pathname);
		}
		return {Pages: pages, Writes: [...writes]};
	})()`)), &s); err != nil {
		b.t.Fatal(err)
	}
	s.Writes = slices.DeleteFunc(s.Writes, func(path string) bool { return path == "/sign-out" || path == "/sign-in" })
	return s
}

// Each page can be used by all, at both sizes, in both schemes, by a reader and by an
// operator, and the browser has no complaint.
func TestEveryPageIsAccessible(t *testing.T) {
	in := staff(t, copied(t))
	in.flaky(t, "ok", "status/503?times=2", "status/500?times=9")
	for _, v := range views() {
		t.Run(v.String(), func(t *testing.T) {
			token := in.reader
			if v.operator {
				token = in.operator
			}
			b := signIn(t, in.instance, token, v.look)
			for _, path := range append(b.crawl().Pages, "/sign-in") {
				b.visit(path)
				b.accessible()
				b.fits()
			}
			b.quiet()
		})
	}
}
