package sim

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	stormpage "github.com/forbear-go/forbear/storm/page"
)

// browser opens the page in a new Chromium. complaints returns what its console
// said that is not mere talk.
func browser(t *testing.T, width, height int64) (ctx context.Context, url string, complaints func() []string) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is missing: apt-get install chromium")
		}
		t.Skip("chromium is missing: apt-get install chromium")
	}
	// Chromium may still write while it ends, so t.TempDir would complain.
	profile, err := os.MkdirTemp("", "page")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	srv := httptest.NewServer(stormpage.Handler(nil))
	t.Cleanup(srv.Close)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(),
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.WindowSize(int(width), int(height)),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("hide-scrollbars", false),
	)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	var mu sync.Mutex
	var said []string
	chromedp.ListenTarget(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			said = append(said, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				said = append(said, fmt.Sprintf("console.%s", e.Type))
			}
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning {
				said = append(said, e.Entry.Text)
			}
		}
	})
	complaints = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(said)
	}
	do(t, ctx, cdplog.Enable(), emulation.SetDeviceMetricsOverride(width, height, 1, width < 500),
		chromedp.Navigate(srv.URL), chromedp.WaitVisible("#table tr"))
	return ctx, srv.URL, complaints
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

func eval[T any](t *testing.T, ctx context.Context, script string) (v T) {
	t.Helper()
	do(t, ctx, chromedp.Evaluate(script, &v))
	return v
}

func screenshot(t *testing.T, ctx context.Context, name string, full bool) {
	t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	var png []byte
	if full {
		do(t, ctx, chromedp.FullScreenshot(&png, 100))
	} else {
		do(t, ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
			png, err = page.CaptureScreenshot().Do(ctx)
			return err
		}))
	}
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

const numbers = `[...document.querySelectorAll("#numbers dd")].map(e => e.textContent).join(" | ")`

// until waits until the script is true.
func until(t *testing.T, ctx context.Context, what, script string) {
	t.Helper()
	for range 100 {
		if eval[bool](t, ctx, script) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s: never", what)
}

// TestDragTheLoad drags the load from 10 k to 100 M requests a second with the
// mouse and watches the numbers change on the way.
func TestDragTheLoad(t *testing.T) {
	ctx, _, complaints := browser(t, 1280, 900)
	before := eval[string](t, ctx, numbers)
	type box struct{ X, Y, W, H float64 }
	b := eval[box](t, ctx, `(() => { const r = document.getElementById("load").getBoundingClientRect(); return {X: r.x, Y: r.y, W: r.width, H: r.height}; })()`)
	y := b.Y + b.H/2
	start := b.X + b.W*(4.0-2)/6
	mouse := func(kind input.MouseType, x float64) chromedp.Action {
		e := input.DispatchMouseEvent(kind, x, y).WithButton(input.Left).WithClickCount(1)
		if kind != input.MouseReleased {
			e = e.WithButtons(1)
		}
		return e
	}
	do(t, ctx, mouse(input.MousePressed, start))
	seen := map[string]bool{}
	for i := 1; i <= 20; i++ {
		do(t, ctx, mouse(input.MouseMoved, start+(b.X+b.W-1-start)*float64(i)/20))
		time.Sleep(60 * time.Millisecond)
		seen[eval[string](t, ctx, numbers)] = true
	}
	do(t, ctx, mouse(input.MouseReleased, b.X+b.W-1))
	until(t, ctx, "100 M", `document.getElementById("load-out").textContent === "100 M req/s"`)
	until(t, ctx, "answer for 100 M", `[...document.querySelectorAll("#numbers dd")].some(e => e.textContent.endsWith(" G"))`)
	if after := eval[string](t, ctx, numbers); after == before {
		t.Error("the numbers did not change")
	}
	if len(seen) < 8 {
		t.Errorf("%d different answers during 20 steps of the drag, want at least 8: nothing is redrawn on the way", len(seen))
	}
	if hash := eval[string](t, ctx, "location.hash"); !strings.Contains(hash, "load=8") {
		t.Errorf("the URL does not hold the load: %q", hash)
	}
	if said := complaints(); len(said) > 0 {
		t.Errorf("console: %q", said)
	}
	t.Logf("%d different answers while dragging; %s", len(seen), eval[string](t, ctx, `document.getElementById("engine").textContent`))
	screenshot(t, ctx, "drag.png", true)
}

// TestEveryControl reaches every control by Tab and moves it by an arrow key or
// the space bar; then another tab with the same URL shows the same.
func TestEveryControl(t *testing.T) {
	ctx, url, complaints := browser(t, 1280, 900)
	ids := eval[[]string](t, ctx, `[...document.querySelectorAll("#controls input, #controls select, #controls button")].map(e => e.id)`)
	if len(ids) < 15 {
		t.Fatalf("%d controls", len(ids))
	}
	reached := map[string]bool{}
	for range len(ids) + 8 {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		id := eval[string](t, ctx, "document.activeElement.id")
		if !slices.Contains(ids, id) || id == "reset" {
			reached[id] = true
			continue
		}
		if reached[id] {
			continue
		}
		reached[id] = true
		const value = `(() => { const e = document.activeElement; return e.type === "checkbox" ? String(e.checked) : e.value; })()`
		before := eval[string](t, ctx, value)
		key := kb.ArrowRight
		switch eval[string](t, ctx, "document.activeElement.type") {
		case "checkbox":
			key = " "
		case "select-one":
			key = kb.ArrowDown
		}
		do(t, ctx, chromedp.KeyEvent(key))
		if after := eval[string](t, ctx, value); after == before {
			t.Errorf("%s: key does not move it from %q", id, before)
		}
		if !eval[bool](t, ctx, `document.activeElement.labels.length > 0`) {
			t.Errorf("%s has no label", id)
		}
	}
	for _, id := range ids {
		if !reached[id] {
			t.Errorf("%s is not reached by Tab", id)
		}
	}
	time.Sleep(300 * time.Millisecond)
	const positions = `[...document.querySelectorAll("#controls input, #controls select")].map(e => e.id + "=" + (e.type === "checkbox" ? e.checked : e.value)).join(" ")`
	want := eval[string](t, ctx, positions)
	hash := eval[string](t, ctx, "location.hash")
	do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(url+"/"+hash), chromedp.WaitVisible("#table tr"))
	if got := eval[string](t, ctx, positions); got != want {
		t.Errorf("the URL %s restores\n%s, want\n%s", hash, got, want)
	}
	if said := complaints(); len(said) > 0 {
		t.Errorf("console: %q", said)
	}
}

// TestPhone: nothing to scroll sideways on 360 x 640, and targets large enough.
func TestPhone(t *testing.T) {
	ctx, _, complaints := browser(t, 360, 640)
	if w := eval[int](t, ctx, "document.documentElement.scrollWidth"); w > 360 {
		t.Errorf("the page is %d pixels wide on a screen of 360", w)
	}
	small := eval[[]string](t, ctx, `[...document.querySelectorAll("#controls input, #controls select, #controls button")].filter(e => e.getBoundingClientRect().height < 20).map(e => e.id)`)
	if len(small) > 0 {
		t.Errorf("too small to hit: %v", small)
	}
	screenshot(t, ctx, "phone.png", false)
	do(t, ctx, chromedp.Evaluate(`document.getElementById("results").scrollIntoView()`, nil))
	time.Sleep(200 * time.Millisecond)
	screenshot(t, ctx, "phone-results.png", false)
	screenshot(t, ctx, "phone-full.png", true)
	if said := complaints(); len(said) > 0 {
		t.Errorf("console: %q", said)
	}
}

// TestEveryFaultDraws chooses each fault and each wait and expects an answer.
func TestEveryFaultDraws(t *testing.T) {
	ctx, _, complaints := browser(t, 1280, 900)
	for _, id := range []string{"fault", "jitter", "loop"} {
		for i := range eval[int](t, ctx, fmt.Sprintf("document.getElementById(%q).options.length", id)) {
			do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`(() => { document.getElementById("verdict").textContent = "?"; const e = document.getElementById(%q); e.selectedIndex = %d; e.dispatchEvent(new Event("input")); })()`, id, i), nil))
			until(t, ctx, fmt.Sprintf("%s %d", id, i), `!["?", "…"].includes(document.getElementById("verdict").textContent)`)
			if class := eval[string](t, ctx, `document.getElementById("verdict").className`); class == "error" {
				t.Errorf("%s %d: %s", id, i, eval[string](t, ctx, `document.getElementById("verdict").textContent`))
			}
		}
	}
	if said := complaints(); len(said) > 0 {
		t.Errorf("console: %q", said)
	}
}

// TestRunLatency: the 95th percentile of the page's own request, as the browser
// sees it, on the default scenario. Run it alone on a quiet machine: PAGE_P95_MS
// sets the limit that fails the test.
func TestRunLatency(t *testing.T) {
	ctx, _, _ := browser(t, 1280, 900)
	const measure = `(async () => {
  const body = JSON.stringify({ scenario: scenario(), variants: ["", ...five], herd: 1000 });
  const all = [];
  for (let i = 0; i < 120; i++) {
    const start = performance.now();
    const r = await fetch("api/run", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    await r.json();
    all.push(performance.now() - start);
  }
  return all.slice(20);
})()`
	var all []float64
	do(t, ctx, chromedp.Evaluate(measure, &all, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	slices.Sort(all)
	p50, p95 := all[len(all)/2], all[len(all)*95/100]
	t.Logf("run request: p50 %.1f ms, p95 %.1f ms of %d", p50, p95, len(all))
	if limit := os.Getenv("PAGE_P95_MS"); limit != "" {
		var ms float64
		if _, err := fmt.Sscan(limit, &ms); err != nil {
			t.Fatal(err)
		}
		if p95 > ms {
			t.Errorf("p95 %.1f ms, want at most %v", p95, ms)
		}
	}
}
