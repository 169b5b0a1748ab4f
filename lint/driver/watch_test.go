package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
)

// syncBuffer is a buffer that is written by one goroutine and read by another.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// take waits until something that ends with want has been written, and returns
// what it was.
func (s *syncBuffer) take(t *testing.T, want string) string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		text := s.b.String()
		if strings.Contains(text, want) && strings.HasSuffix(text, "\n") {
			s.b.Reset()
			s.mu.Unlock()
			return text
		}
		s.mu.Unlock()
	}
	t.Fatalf("got %q, want %q in it", s.b.String(), want)
	return ""
}

// watchIn watches a module until the test ends; done gives the exit code.
func watchIn(t *testing.T, dir string, args ...string) (out, errs *syncBuffer, stop func() int) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	t.Setenv(cacheVariable, t.TempDir())
	o, err := parseArgs(nil, append([]string{"-C", dir, "--watch"}, args...), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	o.poll = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	out, errs = &syncBuffer{}, &syncBuffer{}
	code := make(chan int, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := o.watchFiles(ctx, out, errs)
		if err != nil {
			t.Error(err)
		}
		code <- c
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return out, errs, func() int { cancel(); return <-code }
}

// TestWatch: each round prints what is new and what is gone, and nothing else.
func TestWatch(t *testing.T) {
	other := strings.Replace(fixedRetry, "package m", "package other", 1)
	dir := module(t, map[string]string{"m.go": clean, "other/other.go": other, "config.txt": ""})
	out, errs, stop := watchIn(t, dir)
	first := out.take(t, "watching 2 packages: 2 findings, 2 fail")
	if !strings.HasPrefix(first, "+ other/other.go:10:2: error: retries") || !strings.Contains(first, "\n  fix: wait rand.N") || strings.Contains(first, "m.go:1") {
		t.Errorf("first: got %q", first)
	}

	write(t, dir, "m.go", fixedRetry)
	added := out.take(t, "watching 2 packages: 4 findings")
	if !strings.HasPrefix(added, "+ m.go:10:2: error: ") || strings.Contains(added, "other.go") || strings.Contains(added, "\n- ") {
		t.Errorf("added: got %q, want what is in m.go", added)
	}

	// A line moves, and the code does not compile; both say nothing of findings.
	write(t, dir, "m.go", strings.Replace(fixedRetry, "func Fetch", "\n\nfunc Fetch", 1))
	write(t, dir, "other/other.go", other+"\nvar X int = \"a\"\n")
	broken := out.take(t, "1 package not judged")
	if strings.Contains(broken, "+ ") || strings.Contains(broken, "- ") {
		t.Errorf("broken: got %q, want the totals alone", broken)
	}
	if said := errs.take(t, "not judged: 1 package"); !strings.HasPrefix(said, "# example.com/m/other\nother/other.go:") {
		t.Errorf("broken: got %q, want the fault", said)
	}

	write(t, dir, "other/other.go", "package other\n")
	gone := out.take(t, "watching 2 packages: 2 findings")
	if !strings.HasPrefix(gone, "- other/other.go:10:2: error: retries") || strings.Contains(gone, "m.go") {
		t.Errorf("gone: got %q, want what was in other.go", gone)
	}

	// A new package, and settings that cannot be read, then can.
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "new/new.go", strings.Replace(fixedRetry, "package m", "package new", 1))
	out.take(t, "watching 3 packages: 4 findings")
	write(t, dir, ".forbear-lint.yaml", "disabled: [FB1001]\n")
	errs.take(t, "did you mean disable?")
	write(t, dir, ".forbear-lint.yaml", "disable: [FB1001, FB1054]\n")
	if got := out.take(t, "watching 3 packages"); strings.Count(got, "- ") < 2 || strings.Contains(got, "+ ") {
		t.Errorf("disabled: got %q, want two findings gone", got)
	}
	if code := stop(); code != ExitPass {
		t.Errorf("got %d, want %d", code, ExitPass)
	}
}

// TestWatchReports: with -o each round writes its report in full, between lines
// by which an editor knows where it begins and ends.
func TestWatchReports(t *testing.T) {
	dir := module(t, map[string]string{"m.go": fixedRetry})
	sarif := filepath.Join(t.TempDir(), "m.sarif")
	out, errs, stop := watchIn(t, dir, "-o", "text", "-o", "sarif:"+sarif)
	for range 2 {
		if got := errs.take(t, "waiting for changes"); !strings.HasPrefix(got, "forbear lint: judging\n") {
			t.Errorf("got %q", got)
		}
		if got := out.take(t, "of them fail; for 2 there is a fix (--fix)\n"); !strings.HasPrefix(got, "m.go:") {
			t.Errorf("got %q, want the report", got)
		}
		if text := read(t, filepath.Dir(sarif), "m.sarif"); !strings.Contains(text, "FB1001") {
			t.Errorf("got %s", text)
		}
		write(t, dir, "m.go", "// Package m fetches.\n"+fixedRetry)
	}
	errs.take(t, "waiting for changes")
	stop()
}

// TestWatchFlags: what writes does not go with it.
func TestWatchFlags(t *testing.T) {
	for _, flag := range []string{"--fix", "--print-settings", "--write-baseline=x", "--explain-finding=a.go:1"} {
		if _, err := parseArgs(nil, []string{"--watch", flag}, t.Output()); err == nil {
			t.Errorf("%s: got no error", flag)
		}
	}
}

// TestGuideMatcher: the pattern that the guide gives to Visual Studio Code reads
// what the text format writes, and none of its other lines.
func TestGuideMatcher(t *testing.T) {
	guide := read(t, "../../docs/guides", "lint.md")
	_, rest, _ := strings.Cut(guide, "```json\n{\n  \"version\": \"2.0.0\"")
	block, _, ok := strings.Cut("{\n  \"version\": \"2.0.0\""+rest, "```")
	if !ok {
		t.Fatal("the guide has no tasks.json")
	}
	var tasks struct {
		Tasks []struct {
			ProblemMatcher struct {
				Pattern struct {
					Regexp                                      string
					File, Line, Column, Severity, Message, Code int
				}
				Background struct{ BeginsPattern, EndsPattern string }
			}
		}
	}
	if err := json.Unmarshal([]byte(block), &tasks); err != nil {
		t.Fatalf("%v in %s", err, block)
	}
	matcher := tasks.Tasks[0].ProblemMatcher
	p := matcher.Pattern
	re := regexp.MustCompile(p.Regexp)
	dir := module(t, map[string]string{"m.go": fixedRetry})
	out, errs, _ := watchIn(t, dir, "-o", "text")
	said := errs.take(t, "waiting for changes")
	var got [][]string
	for line := range strings.Lines(out.take(t, "of them fail")) {
		if m := re.FindStringSubmatch(line); m != nil {
			got = append(got, []string{m[p.File], m[p.Line], m[p.Column], m[p.Severity], m[p.Message], m[p.Code]})
		}
	}
	want := [][]string{
		{"m.go", "10", "2", "error", "retries http.Get on failure and waits 1s every time", "FB1001"},
		{"m.go", "15", "13", "error", "the retry sleeps although ctx is in scope", "FB1020"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, pattern := range []string{matcher.Background.BeginsPattern, matcher.Background.EndsPattern} {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(said) {
			t.Errorf("%s: not in %q", pattern, said)
		}
	}
}

// TestWatchFaults: after a round in which no package could be read, the files are
// still looked at, and so are those behind a symbolic link.
func TestWatchFaults(t *testing.T) {
	dir := module(t, map[string]string{"m.go": clean})
	link := filepath.Join(t.TempDir(), "checkout")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	out, errs, stop := watchIn(t, link)
	out.take(t, "watching 1 package: 0 findings")
	write(t, dir, "n.go", "package other\n")
	errs.take(t, "found packages m (m.go) and other (n.go)")
	write(t, dir, "n.go", strings.ReplaceAll(fixedRetry, "Fetch", "Other"))
	out.take(t, "watching 1 package: 2 findings")
	stop()
}

// TestWatchReplaced: a module that stands in for another is looked at too, once it is
// known, and that alone is no change.
func TestWatchReplaced(t *testing.T) {
	dir := module(t, map[string]string{
		"app/go.mod": "module example.com/m\n\ngo 1.26\n\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => ../lib\n",
		"lib/go.mod": "module example.com/lib\n\ngo 1.26\n",
		"lib/lib.go": "package lib\n\nfunc Do() error { return nil }\n",
		"app/m.go":   "package m\n\nimport \"example.com/lib\"\n\nvar Err = lib.Do()\n",
	})
	_, errs, stop := watchIn(t, filepath.Join(dir, "app"), "-o", "text")
	errs.take(t, "waiting for changes\n")
	time.Sleep(300 * time.Millisecond)
	errs.mu.Lock()
	if again := errs.b.String(); again != "" {
		t.Errorf("got %q although nothing has changed", again)
	}
	errs.mu.Unlock()
	write(t, dir, "lib/lib.go", "package lib\n\nfunc Do() string { return \"\" }\n")
	errs.take(t, "waiting for changes\n")
	stop()
}

// TestManyErrors: people are shown some of the packages that were not judged, and
// how many there are; reports and totals have all of them, and their findings are
// not gone.
func TestManyErrors(t *testing.T) {
	v := &verdict{loaded: &loaded{}}
	w := watcher{options: &options{}, stdout: t.Output(), known: map[string]report.Finding{}}
	for i := range 25 {
		path := fmt.Sprintf("example.com/m/p%02d", i)
		v.roots = append(v.roots, &packages.Package{PkgPath: path})
		v.errs = append(v.errs, unjudged{path, errors.New(path + " is odd")})
		f := report.Finding{ID: "FB1001", Package: path, Identity: path}
		w.known[f.Fingerprint()] = f
	}
	var b bytes.Buffer
	v.complain(&b)
	if got := b.String(); strings.Count(got, "is odd") != 20 || !strings.HasSuffix(got, "not judged: 5 packages more\n") {
		t.Errorf("got %s", got)
	}
	if err := w.show(&report.Report{}, v); err != nil || len(w.known) != 25 || !strings.HasSuffix(w.status, "25 findings, 0 fail; 25 packages not judged") {
		t.Errorf("got %v, %d findings, %s; want that none is gone", err, len(w.known), w.status)
	}
	if n := len(v.problems()); n != 25 {
		t.Errorf("got %d problems, want 25", n)
	}
}
