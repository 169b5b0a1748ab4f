package sim

import (
	"context"
	"errors"
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

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm"
	stormpage "github.com/forbear-go/forbear/storm/page"
)

// policies reads a policy file as the command does: a word is a dependency.
func policies(text []byte) (map[string]forbear.Policy, error) {
	if string(text) == "mistake" {
		return nil, errors.Join(&storm.FieldError{Path: "line 3, column 5", Detail: "unknown key"})
	}
	all := map[string]forbear.Policy{}
	for _, name := range strings.Fields(string(text)) {
		all[name] = forbear.Policy{Disabled: name == "never"}
	}
	return all, nil
}

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
	srv := httptest.NewServer(stormpage.Handler(policies))
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
	// The numbers follow while the button is down.
	for i := 1; i <= 8; i++ {
		last := eval[string](t, ctx, numbers)
		do(t, ctx, mouse(input.MouseMoved, start+(b.X+b.W-1-start)*float64(i)/8))
		until(t, ctx, fmt.Sprintf("step %d of the drag", i), fmt.Sprintf("%s !== %q", numbers, last))
	}
	do(t, ctx, mouse(input.MouseReleased, b.X+b.W-1))
	until(t, ctx, "100 M", `document.getElementById("load-out").textContent === "100 M req/s"`)
	until(t, ctx, "answer for 100 M", `[...document.querySelectorAll("#numbers dd")].some(e => e.textContent.endsWith(" G"))`)
	if after := eval[string](t, ctx, numbers); after == before {
		t.Error("the numbers did not change")
	}
	if hash := eval[string](t, ctx, "location.hash"); !strings.Contains(hash, "load=8") {
		t.Errorf("the URL does not hold the load: %q", hash)
	}
	if said := complaints(); len(said) > 0 {
		t.Errorf("console: %q", said)
	}
	t.Log(eval[string](t, ctx, `document.getElementById("engine").textContent`))
	screenshot(t, ctx, "drag.png", true)
}

// TestEveryControl reaches every control by Tab and moves it by an arrow key or
// the space bar; then another tab with the same URL shows the same.
func TestEveryControl(t *testing.T) {
	ctx, url, complaints := browser(t, 1280, 900)
	ids := eval[[]string](t, ctx, `[...document.querySelectorAll("#controls input, #controls select, #controls button")].filter(e => e.checkVisibility()).map(e => e.id)`)
	if len(ids) < 15 {
		t.Fatalf("%d controls", len(ids))
	}
	reached := map[string]bool{}
	for range len(ids) + 8 {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		id := eval[string](t, ctx, "document.activeElement.id")
		// A case switches the others off: TestCaseAndPolicyFile.
		if !slices.Contains(ids, id) || id == "reset" || id == "file" || id == "case" {
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
	}
	for _, id := range ids {
		if !eval[bool](t, ctx, fmt.Sprintf(`(e => e.type === "button" || e.labels.length > 0)(document.getElementById(%q))`, id)) {
			t.Errorf("%s has no label", id)
		}
		if !reached[id] {
			t.Errorf("%s is not reached by Tab", id)
		}
	}
	time.Sleep(300 * time.Millisecond)
	const positions = `[...document.querySelectorAll("#controls input, #controls select")].filter(e => e.id !== "file").map(e => e.id + "=" + (e.type === "checkbox" ? e.checked : e.value)).join(" ")`
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

// TestPhone: results first on 360 x 640, nothing to scroll sideways, targets large enough,
// and the verdict in sight while a control is moved.
func TestPhone(t *testing.T) {
	ctx, _, complaints := browser(t, 360, 640)
	const top = `document.querySelector(%q).getBoundingClientRect().top`
	for what, most := range map[string]float64{"#verdict": 200, "#numbers": 300, "#charts canvas": 1100} {
		if y := eval[float64](t, ctx, fmt.Sprintf(top, what)); y > most {
			t.Errorf("%s begins at %.0f, want at most %.0f", what, y, most)
		}
	}
	screenshot(t, ctx, "phone-results.png", false)
	do(t, ctx, chromedp.Click("summary"), chromedp.WaitVisible("#load"))
	do(t, ctx, chromedp.Evaluate(`document.getElementById("retries").scrollIntoView({block: "center"})`, nil))
	if y := eval[float64](t, ctx, fmt.Sprintf(top, "#verdict")); y < 0 || y > 620 {
		t.Errorf("the verdict is at %.0f, out of sight of the controls", y)
	}
	if w := eval[int](t, ctx, "document.documentElement.scrollWidth"); w > 360 {
		t.Errorf("the page is %d pixels wide on a screen of 360", w)
	}
	small := eval[[]string](t, ctx, `[...document.querySelectorAll("#controls input, #controls select, #controls button")].filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 24).map(e => e.id)`)
	if len(small) > 0 {
		t.Errorf("too small to hit: %v", small)
	}
	screenshot(t, ctx, "phone.png", false)
	screenshot(t, ctx, "phone-full.png", true)
	if said := complaints(); len(said) > 0 {
		t.Errorf("console: %q", said)
	}
}

// TestCaseAndPolicyFile: each case runs, a policy file replaces the retries, and what
// they replace is switched off.
func TestCaseAndPolicyFile(t *testing.T) {
	ctx, _, complaints := browser(t, 1280, 900)
	const off = `[...document.querySelectorAll("fieldset:disabled")].map(e => e.id.replace("-fields", "")).join()`
	expect := func(what, script, want string) {
		t.Helper()
		until(t, ctx, what+": "+want, fmt.Sprintf("%s === %q", script, want))
	}
	choose := func(id, value string) {
		t.Helper()
		do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`(() => { document.getElementById("verdict").textContent = "?"; const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("input")); })()`, id, value), nil))
		until(t, ctx, id+" "+value, `document.getElementById("verdict").textContent !== "?"`)
		if said := eval[string](t, ctx, `document.getElementById("verdict").textContent`); strings.HasPrefix(said, "Not run") {
			t.Errorf("%s %s: %s", id, value, said)
		}
	}
	expect("at first", off, "")
	for _, s := range storm.Named() {
		choose("case", s.Name)
		expect(s.Name, off, "load,fault,retry,service")
		until(t, ctx, s.Name+": the verdict is explained", `document.getElementById("meaning").textContent.toLowerCase().startsWith(document.getElementById("verdict").className + ": ")`)
		expect(s.Name, `document.getElementById("about").textContent.split(". The case")[0]`, s.Description)
	}
	if hash := eval[string](t, ctx, "location.hash"); hash != "#case=hundred-million" {
		t.Errorf("the URL does not hold the case: %q", hash)
	}
	choose("case", "partial")
	upload := func(text string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		do(t, ctx, chromedp.SetUploadFiles("#file", []string{path}))
	}
	const retries = `document.querySelector("#retry-fields p").textContent.startsWith("The policy file sets")`
	const attempts = `[...document.querySelectorAll("#numbers div")].find(e => e.firstChild.textContent === "multiplier").children[1].textContent`
	upload("search never")
	expect("the first by name, on the case", attempts, "1.000x")
	expect("both", off, "load,fault,retry,service")
	choose("dependency", "search")
	until(t, ctx, "the other dependency retries", attempts+` !== "1.000x"`)
	choose("case", "")
	expect("the policy file alone", off, "retry")
	until(t, ctx, "the policy file says so", retries)
	upload("mistake")
	expect("a mistake", `document.getElementById("mistakes").textContent`, "line 3, column 5: unknown key")
	if eval[bool](t, ctx, `document.getElementById("outcome").checkVisibility()`) {
		t.Error("the numbers of the last run stand below a mistake")
	}
	do(t, ctx, chromedp.Click("#remove"))
	expect("removed", off, "")
	until(t, ctx, "results are back", `document.getElementById("outcome").checkVisibility()`)
	// The browser itself names a refused request.
	if said := complaints(); len(said) != 1 || !strings.Contains(said[0], "422") {
		t.Errorf("console: %q", said)
	}
}

// TestContrast: WCAG AA for every text, in both schemes.
func TestContrast(t *testing.T) {
	ctx, _, _ := browser(t, 1280, 900)
	for _, scheme := range []string{"light", "dark"} {
		do(t, ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		low := eval[[]string](t, ctx, `(() => {
  const parts = (c) => c.match(/[\d.]+/g).map(Number);
  const light = (c) => parts(c).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((l, v, i) => l + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { while (e && parts(getComputedStyle(e).backgroundColor)[3] === 0) e = e.parentElement; return e ? getComputedStyle(e).backgroundColor : "rgb(255, 255, 255)"; };
  const texts = [...document.body.querySelectorAll("*")].filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()));
  if (texts.length < 100) return ["only " + texts.length + " texts"];
  return texts.map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.tagName + " " + e.textContent.trim().slice(0, 30)];
  }).filter(([ratio]) => ratio < 4.5).map(([ratio, what]) => ratio.toFixed(1) + ": " + what);
})()`)
		if len(low) > 0 {
			t.Errorf("%s: %q", scheme, low)
		}
		screenshot(t, ctx, scheme+".png", true)
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
  for (let i = 0; i < 60; i++) {
    const start = performance.now();
    const r = await fetch("api/run", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    await r.json();
    all.push(performance.now() - start);
  }
  return all.slice(10);
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
