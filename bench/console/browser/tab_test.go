package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// chromium starts one browser for all tests; each tab has a profile of its own in it.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		return nil, fmt.Errorf("chromium is missing: apt-get install chromium")
	}
	dir, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, err
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.NoSandbox)...)
	ctx, _ = chromedp.NewContext(ctx)
	closeBrowser = func() { _ = chromedp.Cancel(ctx); end(); _ = os.RemoveAll(dir) }
	return ctx, chromedp.Run(ctx)
})

var closeBrowser = func() {}

// look is how a tab looks at the pages.
type look struct {
	width, height int64
	dark          bool
}

func (l look) String() string { return fmt.Sprintf("%dx%d-%s", l.width, l.height, l.scheme()) }

func (l look) scheme() string {
	if l.dark {
		return "dark"
	}
	return "light"
}

var (
	desk  = look{1280, 900, false}
	looks = []look{desk, {1280, 900, true}, {360, 740, false}, {360, 740, true}}
)

// view is who looks at the pages, and how.
type view struct {
	look
	operator bool
}

func (v view) String() string { return fmt.Sprintf("%s-operator=%t", v.look, v.operator) }

// views are all of them; with -short an operator at a desk and a reader on a phone.
func views() (list []view) {
	if testing.Short() {
		return []view{{desk, true}, {look{360, 740, true}, false}}
	}
	for _, l := range looks {
		list = append(list, view{l, true}, view{l, false})
	}
	return list
}

// request is what the browser asked a server for.
type request struct {
	method, url string
	kind        network.ResourceType
}

// tab is a page of a browser, at the admin endpoint of an instance.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	said     []string // by the browser's console
	requests []request
	streams  map[network.RequestID]bool // event streams that are open
}

// open opens a tab with cookies of its own.
func open(t *testing.T, base string, l look) *tab {
	t.Helper()
	parent, err := chromium()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	id, dispose, err := profile(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dispose)
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithTargetID(id))
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, base: base, streams: map[network.RequestID]bool{}}
	chromedp.ListenTarget(ctx, b.listen)
	b.do(cdplog.Enable(), network.Enable(), emulation.SetDeviceMetricsOverride(l.width, l.height, 1, l.width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme()}}))
	return b
}

// profile makes a profile with a window. chromedp makes none without, where Chromium opens
// no tab.
func profile(parent context.Context) (id target.ID, dispose func(), err error) {
	ctx := cdp.WithExecutor(parent, chromedp.FromContext(parent).Browser)
	in, err := target.CreateBrowserContext().Do(ctx)
	if err != nil {
		return "", nil, err
	}
	id, err = target.CreateTarget("about:blank").WithBrowserContextID(in).WithNewWindow(true).Do(ctx)
	return id, func() { _ = target.DisposeBrowserContext(in).Do(ctx) }, err
}

// listen keeps what the browser says and sends. A response that is an error is no
// complaint: tests ask for some.
func (b *tab) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.said = append(b.said, fmt.Sprintf("console.%s: %s", e.Type, e.Args[0].Value))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Source != cdplog.SourceNetwork && (e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning) {
			b.said = append(b.said, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if e.Type == network.ResourceTypeOther { // the browser's own, as for the icon
			return
		}
		b.requests = append(b.requests, request{e.Request.Method, e.Request.URL, e.Type})
		if e.Type == network.ResourceTypeEventSource {
			b.streams[e.RequestID] = true
		}
	case *network.EventLoadingFinished:
		delete(b.streams, e.RequestID)
	case *network.EventLoadingFailed:
		delete(b.streams, e.RequestID)
	}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// visit opens a page by its address.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// eval returns what an expression of JavaScript is, as a string or as JSON. The page's
// policy does not bind it.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	var raw json.RawMessage
	b.do(chromedp.Evaluate(expression, &raw, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// until waits for an expression to be true, much longer than it takes. chromedp's own way compiles a function in
// the page, which the policy forbids.
func (b *tab) until(expression string) {
	b.t.Helper()
	end := time.Now().Add(90 * time.Second)
	for {
		var is bool
		err := chromedp.Run(b.ctx, chromedp.Evaluate("!!("+expression+")", &is))
		switch {
		case err == nil && is:
			return
		case b.ctx.Err() != nil || time.Now().After(end): // an error alone may be a page that changes
			b.t.Fatalf("never true: %s (%v); at %s the page says:\n%s", expression, err, b.eval("location.href"), b.eval("document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// untilText waits for a text on the page.
func (b *tab) untilText(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body && document.body.innerText.includes(%s)", quote(text)))
}

func (b *tab) text() string {
	b.t.Helper()
	return b.eval("document.body.innerText")
}

// press clicks the link or button of that name that is seen first.
func (b *tab) press(name string) {
	b.t.Helper()
	b.until(named(name))
	b.do(chromedp.Evaluate(named(name)+".click()", nil))
}

// named is the expression for the first visible link or button by its whole name.
func named(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('a, button, summary')].find(e => e.checkVisibility() && (e.getAttribute('aria-label') || e.innerText).trim() === %s)`, quote(name))
}

func (b *tab) has(name string) bool {
	b.t.Helper()
	return b.eval("!!("+named(name)+")") == "true"
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// quiet fails when the browser's console has complained, of the policy above all.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.t.Errorf("the browser complains: %s", strings.Join(b.said, "\n"))
	}
}

// sent returns the requests so far, and how many streams are open.
func (b *tab) sent() ([]request, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests), len(b.streams)
}

func query(s string) string { return url.QueryEscape(s) }
