package browser

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/chromedp/chromedp"
)

// axe is the source of axe-core, which make console-node has installed.
var axe = sync.OnceValues(func() (string, error) {
	install := exec.Command("make", "-s", "console-node")
	install.Dir, install.Stderr = root, os.Stderr
	if err := install.Run(); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, "bin/console/node_modules/axe-core/axe.min.js"))
	return string(text), err
})

// accessible fails on what axe finds serious or critical on the page.
func (b *tab) accessible() {
	b.t.Helper()
	source, err := axe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Evaluate(source+";0", nil))
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML, FailureSummary string
		}
	}
	if err := json.Unmarshal([]byte(b.eval(`axe.run({resultTypes: ['violations']}).then(r => r.violations)`)), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		if f.Impact == "serious" || f.Impact == "critical" {
			b.t.Errorf("%s: %s (%s): %d times: %+v", b.eval("location.pathname + location.search"), f.ID, f.Help, len(f.Nodes), f.Nodes[0])
		}
	}
}

// fits fails when the page is wider than the window.
func (b *tab) fits() {
	b.t.Helper()
	if wide := b.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide != "0" {
		b.t.Errorf("%s is %s pixels wider than the window", b.eval("location.pathname"), wide)
	}
}
