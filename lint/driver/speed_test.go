package driver

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var benchModule = flag.String("module", "", "the `folder` of a module to measure, instead of one of 50,000 lines that is made")

// BenchmarkAgainstVet measures forbear lint beside go vet on one module, both
// with warm caches and in turns, and the first run without a cache:
//
//	go test -run none -bench AgainstVet -benchtime 10x ./driver -module ~/src/helm
//
// The metrics are milliseconds, and how often go vet's time goes into
// forbear lint's: of the clock, and of the processors, which says more on a busy
// machine.
func BenchmarkAgainstVet(b *testing.B) {
	b.Setenv("GOWORK", "off")
	dir := *benchModule
	if dir == "" {
		dir = b.TempDir()
		if err := generate(dir, 200, 250); err != nil {
			b.Fatal(err)
		}
	}
	tool := filepath.Join(b.TempDir(), "forbear-lint")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", tool, "../cmd/forbear-lint").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Setenv(cacheVariable, b.TempDir())
	took := func(name string, args ...string) (clock, cpu time.Duration) {
		cmd := exec.CommandContext(b.Context(), name, args...)
		cmd.Dir = dir
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code < 0 || code == ExitUnjudged && name == tool {
			b.Fatalf("%s: %v\n%s", name, err, out)
		}
		return time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	took("go", "vet", "./...")     // builds what is imported
	took(tool, "-q", "--no-cache") // so does this
	first, _ := took(tool, "-q")   // type-checks and judges everything
	var vet, lint, vetCPU, lintCPU time.Duration
	n := 0
	for b.Loop() {
		clock, cpu := took("go", "vet", "./...")
		vet, vetCPU = vet+clock, vetCPU+cpu
		clock, cpu = took(tool, "-q")
		lint, lintCPU = lint+clock, lintCPU+cpu
		n++
	}
	ms := func(d time.Duration) float64 { return float64(d.Milliseconds()) / float64(n) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(first.Milliseconds()), "first-ms")
	b.ReportMetric(ms(vet), "vet-ms")
	b.ReportMetric(ms(lint), "lint-ms")
	b.ReportMetric(float64(lint)/float64(vet), "clock-ratio")
	b.ReportMetric(float64(lintCPU)/float64(vetCPU), "cpu-ratio")
}

// generate writes a module of so many packages of about so many lines, each of
// which imports the one before it, and retries something.
func generate(dir string, packages, lines int) error {
	files := map[string]string{"go.mod": "module example.com/large\n\ngo 1.26\n"}
	for i := range packages {
		var b strings.Builder
		name := fmt.Sprintf("p%d", i)
		fmt.Fprintf(&b, "package %s\n\nimport (\n\t\"context\"\n\t\"net/http\"\n\t\"time\"\n", name)
		if i > 0 {
			fmt.Fprintf(&b, "\n\t\"example.com/large/p%d\"\n)\n\n// Below is what this one needs.\nvar Below = p%d.Fetch0\n", i-1, i-1)
		} else {
			b.WriteString(")\n")
		}
		body := fixedRetry[strings.Index(fixedRetry, "func "):]
		for j := 0; strings.Count(b.String(), "\n") < lines; j++ {
			fmt.Fprintf(&b, "\n%s", strings.Replace(body, "Fetch", fmt.Sprintf("Fetch%d", j), 1))
		}
		files[name+"/"+name+".go"] = b.String()
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
