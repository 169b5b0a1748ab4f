package driver

import (
	"encoding"
	"encoding/gob"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/settings"
)

// chain is a module of three packages in a row and one beside them. Whether top
// is reported depends on what base does, by way of a fact about middle.
func chain(t *testing.T) string {
	t.Setenv(cacheVariable, t.TempDir())
	return module(t, map[string]string{
		"base/base.go":     strings.Replace(pause, "WAIT", "time.Second", 1),
		"middle/middle.go": "package middle\n\nimport \"example.com/m/base\"\n\n// Pause waits.\n//\n//go:noinline\nfunc Pause() { base.Pause() }\n",
		"top/top.go": "package top\n\nimport (\n\t\"net/http\"\n\n\t\"example.com/m/middle\"\n)\n\n" +
			"func Fetch(url string) (err error) {\n\tfor range 3 {\n\t\tvar resp *http.Response\n\t\tif resp, err = http.Get(url); err == nil {\n\t\t\treturn resp.Body.Close()\n\t\t}\n\t\tmiddle.Pause()\n\t}\n\treturn err\n}\n",
		"other/other.go": "package other\n\nimport \"time\"\n\nvar Wait = time.Second\n",
	})
}

// pause has the same export data whatever its function does.
const pause = `package base

import (
	"math/rand/v2"
	"time"
)

var _ = rand.N[int]

// Pause waits.
//
//go:noinline
func Pause() { time.Sleep(WAIT) }
`

// judgeIn judges a module as forbear lint does.
func judgeIn(t *testing.T, dir string, args ...string) *verdict {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	o, err := parseArgs(nil, append([]string{"-C", dir, "-q"}, args...), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	set, err := o.configure(t.Output())
	if err != nil {
		t.Fatal(err)
	}
	v, err := o.judge(t.Context(), set, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// shownBy lists what a verdict holds of a rule and above low confidence.
func shownBy(v *verdict, rule string) (list []string) {
	for _, f := range v.findings {
		if f.ID == rule {
			list = append(list, f.File)
		}
	}
	return list
}

// TestCache: what is judged again is what has changed, and what has facts from
// it; and facts that were kept count as fresh ones do.
func TestCache(t *testing.T) {
	dir := chain(t)
	fixed := []string{"top/top.go"}
	step := func(name string, anew int, reported []string, args ...string) {
		t.Helper()
		v := judgeIn(t, dir, args...)
		if v.anew != anew {
			t.Errorf("%s: got %d packages judged anew, want %d", name, v.anew, anew)
		}
		if got := shownBy(v, "FB1001"); !slices.Equal(got, reported) {
			t.Errorf("%s: got FB1001 in %v, want %v", name, got, reported)
		}
	}
	step("first", 4, fixed)
	step("again", 0, fixed)
	step("without a cache", 4, fixed, "--no-cache")

	// One that nothing imports.
	write(t, dir, "other/other.go", "package other\n\nimport \"time\"\n\nvar Wait = time.Minute\n")
	step("other", 1, fixed)
	// The last one needs facts that were not learned in this run.
	write(t, dir, "top/top.go", strings.Replace(read(t, dir, "top/top.go"), "range 3", "range 4", 1))
	step("top", 1, fixed)
	// The types of base stay what they are, and its function no longer waits.
	before := read(t, dir, "base/base.go")
	write(t, dir, "base/base.go", strings.Replace(pause, "WAIT", "rand.N(time.Second)", 1))
	step("base waits at random", 3, nil)
	write(t, dir, "base/base.go", before)
	step("base as it was", 0, fixed)
	// Settings decide what is found, and so does the build.
	write(t, dir, settings.FileName, "disable: [FB1001]\n")
	step("settings", 4, nil)
	step("settings again", 0, nil)
	os.Remove(filepath.Join(dir, settings.FileName))
	step("no settings", 0, fixed)
	write(t, dir, "base/more.go", "//go:build slow\n\npackage base\n\nvar More = 1\n")
	step("file left out", 0, fixed)
	step("tag", 3, fixed, "-tags", "slow")
	step("tag again", 0, fixed, "-tags", "slow")
	write(t, dir, "go.mod", "module example.com/m\n\ngo 1.25\n")
	step("language", 4, fixed)
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// TestCacheShowsTheSame: a report from the cache is the same to the byte, from
// another folder too.
func TestCacheShowsTheSame(t *testing.T) {
	t.Setenv(cacheVariable, t.TempDir())
	dir := module(t, map[string]string{
		"a/a.go": strings.Replace(fixedRetry, "package m", "package a", 1),
		"b/b.go": strings.Replace(strings.Replace(suppressible, "package m", "package b", 1), "%s", "//forbear:ignore FB1001 the vendor asks for 1 s", 1),
		"c/c.go": "package c\n\n//forbear:ignore FB1001 it was there once\nvar X = 1\n",
	})
	args := []string{"-o", "json", "--all", "--show-suppressed"}
	_, want, _ := lintIn(t, dir, append(args, "--no-cache")...)
	for range 2 {
		if _, got, errs := lintIn(t, dir, args...); got != want {
			t.Errorf("got\n%s%s\nwant\n%s", got, errs, want)
		}
	}
	t.Setenv("GOWORK", "off")
	if v := judgeIn(t, filepath.Join(dir, "a"), "--", "./..."); v.anew != 0 || len(v.findings) == 0 || v.findings[0].File != "a.go" {
		t.Errorf("in a folder below: got %d anew, %v", v.anew, v.findings)
	}
}

// TestCacheFaults: damaged entries, a folder that is none, and several runs at
// once are all survived, with the same result.
func TestCacheFaults(t *testing.T) {
	dir := chain(t)
	want := judgeIn(t, dir)
	entries := cacheFiles(t)
	if len(entries) != 4 {
		t.Fatalf("got entries %v, want 4", entries)
	}
	for i, name := range entries {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0: // cut off
			data = data[:len(data)-1]
		case 1: // another byte
			data[len(data)-1] ^= 1
		case 2:
			data = nil
		case 3: // whole, and no entry
			data = append(make([]byte, 32), "text"...)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v := judgeIn(t, dir); v.anew != 4 || len(v.findings) != len(want.findings) {
		t.Errorf("damaged: got %d anew and %d findings, want 4 and %d", v.anew, len(v.findings), len(want.findings))
	}
	if v := judgeIn(t, dir); v.anew != 0 || len(v.findings) != len(want.findings) {
		t.Errorf("mended: got %d anew and %d findings, want 0 and %d", v.anew, len(v.findings), len(want.findings))
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), "file", "")
	t.Setenv(cacheVariable, file)
	if v := judgeIn(t, dir); v.anew != 4 || len(v.findings) != len(want.findings) {
		t.Errorf("no folder: got %d anew and %d findings, want 4 and %d", v.anew, len(v.findings), len(want.findings))
	}
}

// TestCacheWriters: several writers and readers of one entry see it whole or
// not at all.
func TestCacheWriters(t *testing.T) {
	c := newCache(t.TempDir(), &keys{}, allAnalyzers())
	e := &entry{Findings: make([]keptFinding, 50)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				c.put("abcdef", e)
			}
		})
		wg.Go(func() {
			for range 50 {
				if got := c.get("abcdef"); got != nil && len(got.Findings) != 50 {
					t.Errorf("got %d findings, want 50", len(got.Findings))
				}
			}
		})
	}
	wg.Wait()
	if got := c.get("abcdef"); got == nil || len(got.Findings) != 50 {
		t.Error("the entry is lost")
	}
	if files, err := os.ReadDir(filepath.Join(c.dir, "ab")); err != nil || len(files) != 1 {
		t.Errorf("got files %v, %v; want the entry alone", files, err)
	}
}

// TestCacheTrim: what was not used for a week goes, once a day, and what is
// left fits the bounds.
func TestCacheTrim(t *testing.T) {
	c := newCache(t.TempDir(), &keys{}, allAnalyzers())
	old, fresh := strings.Repeat("aa", 32), strings.Repeat("ab", 32)
	now := time.Now()
	// The folder may hold what is none of the cache's.
	for _, name := range []string{"notes.txt", "aa/notes.txt", old} {
		file := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, c.dir, name, "")
		if err := os.Chtimes(file, now, now.Add(-10*cacheAge)); err != nil {
			t.Fatal(err)
		}
	}
	c.put(old, &entry{})
	c.put(fresh, &entry{})
	if err := os.Chtimes(c.file(old), now, now.Add(-cacheAge-time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.trim(now)
	if c.get(old) != nil || c.get(fresh) == nil {
		t.Error("want the old entry gone and the new one there")
	}
	c.put(old, &entry{})
	if err := os.Chtimes(c.file(old), now, now.Add(-cacheAge-time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.trim(now.Add(time.Hour))
	if _, err := os.Stat(c.file(old)); err != nil {
		t.Error("trimmed again within a day")
	}
	// A use makes it young again.
	if c.get(old) == nil {
		t.Error("the entry cannot be read")
	}
	c.trim(now.Add(25 * time.Hour))
	if c.get(old) == nil {
		t.Error("the entry was used, and is gone")
	}
	// A sparse file stands for many entries.
	if err := os.Truncate(c.file(fresh), cacheBytes+1); err != nil {
		t.Fatal(err)
	}
	c.trim(now.Add(50 * time.Hour))
	if _, err := os.Stat(c.file(fresh)); err == nil {
		t.Error("the cache is over its bounds")
	}
	for _, name := range []string{"notes.txt", "aa/notes.txt", old} {
		if _, err := os.Stat(filepath.Join(c.dir, name)); err != nil {
			t.Errorf("%s is none of the cache's, and is gone", name)
		}
	}
}

// TestCacheWaivers: a waiver that lifts a finding from the cache is used, and
// one that has expired since lifts none.
func TestCacheWaivers(t *testing.T) {
	dir := chain(t)
	write(t, dir, settings.FileName, "waivers:\n- {id: W-1, rule: R-1, code: [top], reason: for now, expires: 2999-01-01}\n")
	for range 2 {
		if code, out, errs := lintIn(t, dir); code != ExitPass || strings.Contains(errs, "lifts nothing") {
			t.Errorf("got %d\n%s%s", code, out, errs)
		}
	}
	set := &settings.Settings{}
	set.Waivers = []*settings.Waiver{{Rule: "R-1", Expires: "2027-01-01"}}
	last := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	before, err := newKeys("p", set, last)
	if err != nil {
		t.Fatal(err)
	}
	after, err := newKeys("p", set, last.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	other, err := newKeys("q", set, last)
	if err != nil {
		t.Fatal(err)
	}
	if before.common == after.common || before.common == other.common {
		t.Error("the day and the program are no part of the keys")
	}
}

// TestCacheOfBrokenCode: what could not be judged is not kept, and is judged as
// soon as it can be.
func TestCacheOfBrokenCode(t *testing.T) {
	dir := chain(t)
	good := read(t, dir, "base/base.go")
	write(t, dir, "base/base.go", good+"\nvar X int = \"text\"\n")
	for range 2 {
		if v := judgeIn(t, dir); v.complete() || len(v.notJudged) != 1 {
			t.Errorf("got %v not judged, want base alone", v.notJudged)
		}
	}
	write(t, dir, "base/base.go", good)
	if v := judgeIn(t, dir); !v.complete() || len(shownBy(v, "FB1001")) != 1 {
		t.Errorf("mended: got %v not judged and %v, want top/top.go", v.notJudged, shownBy(v, "FB1001"))
	}
}

// cacheFiles lists the entries of the cache.
func cacheFiles(t *testing.T) (list []string) {
	t.Helper()
	dir := os.Getenv(cacheVariable)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "trimmed" {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestFactsAreKeptWhole: facts are plain data to the last field, since a field
// that is not exported would be lost on the way through the cache.
func TestFactsAreKeptWhole(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type, string)
	check = func(typ reflect.Type, at string) {
		if seen[typ] || typ.Implements(reflect.TypeFor[gob.GobEncoder]()) || typ.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			check(typ.Elem(), at)
		case reflect.Map:
			check(typ.Key(), at)
			check(typ.Elem(), at)
		case reflect.Struct:
			for f := range typ.Fields() {
				if !f.IsExported() {
					t.Errorf("%s.%s is not exported", at, f.Name)
				}
				check(f.Type, at+"."+f.Name)
			}
		}
	}
	facts := 0
	var visit func([]*analysis.Analyzer)
	visit = func(list []*analysis.Analyzer) {
		for _, a := range list {
			for _, f := range a.FactTypes {
				facts++
				check(reflect.TypeOf(f), reflect.TypeOf(f).String())
			}
			visit(a.Requires)
		}
	}
	visit(allAnalyzers())
	if facts == 0 {
		t.Error("no analyzer has facts")
	}
	check(reflect.TypeFor[entry](), "entry")
}
