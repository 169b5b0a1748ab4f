package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint/settings"
)

// keys makes the keys of the cache. A key holds everything that decides what is
// found in a package: the linter's own build, the settings, the package's files,
// the types of what it imports, and the keys of those that it has facts from.
type keys struct {
	common string // the same for all packages of a run

	mu      sync.Mutex
	of      map[*packages.Package]string
	exports map[string]string // of files of export data
}

// newKeys returns the keys of a run of this program with the given settings.
// A waiver lifts a finding until a day, so that the day is part of them.
func newKeys(program string, set *settings.Settings, now time.Time) (*keys, error) {
	text, err := set.YAML()
	if err != nil {
		return nil, err
	}
	var d digest
	d.add("forbear lint cache 1", program, string(text))
	for _, w := range set.Waivers {
		d.add(fmt.Sprint(w.Expires.Holds(now)))
	}
	return &keys{common: d.sum(), of: map[*packages.Package]string{}, exports: map[string]string{}}, nil
}

// programSum is the sum of this program's file: another build may find something
// else. A file that takes its place meanwhile is not the one that runs.
var programSum = sync.OnceValues(func() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	return fileSum(name)
})

// fileSum is the sum of a file.
func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sumOf is the sum of the contents of a file.
func sumOf(src []byte) string {
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:])
}

// key returns the key of a package as it is now, and the sums of its files; ok is false for one that must not be kept,
// such as one that does not compile. The packages that it needs were judged
// before it.
func (c *cache) key(l *loaded, p *packages.Package) (key string, sums map[string]string, ok bool) {
	if c == nil || p.ExportFile == "" {
		return "", nil, false
	}
	sums = map[string]string{}
	k := c.keys
	var d digest
	d.add(k.common, p.PkgPath)
	if m := p.Module; m != nil {
		d.add(m.Path, m.Version, m.GoVersion)
	}
	d.add(fmt.Sprint(p.TypesSizes.Sizeof(types.Typ[types.Uintptr]), p.TypesSizes.Alignof(types.Typ[types.Int64]), l.borrowed[p]))
	for _, name := range sources(p) {
		sum, err := fileSum(name)
		if err != nil {
			return "", nil, false
		}
		sums[name] = sum
		d.add(name, sum)
	}
	for _, path := range sortedImports(p) {
		dep := p.Imports[path]
		if dep.PkgPath == "unsafe" {
			continue
		}
		sum, ok := k.export(dep)
		if !ok {
			return "", nil, false
		}
		d.add(path, dep.PkgPath, sum)
	}
	for _, dep := range l.needs[p] {
		k.mu.Lock()
		sum := k.of[dep]
		k.mu.Unlock()
		if sum == "" {
			return "", nil, false
		}
		d.add(dep.PkgPath, sum)
	}
	return d.sum(), sums, true
}

// remember notes the key of a package that was judged, for those that need its
// facts. Without it they have no key either.
func (c *cache) remember(p *packages.Package, key string) {
	c.keys.mu.Lock()
	defer c.keys.mu.Unlock()
	c.keys.of[p] = key
}

// byContent is a file of the go command's build cache, which is named after the
// sum of its contents.
var byContent = regexp.MustCompile(`^[0-9a-f]{2}/([0-9a-f]{64})-d$`)

// export is a sum of the types that a package exports, with those of all that
// they are made of.
func (k *keys) export(p *packages.Package) (string, bool) {
	name := p.ExportFile
	if name == "" {
		return "", false
	}
	if at := byContent.FindStringSubmatch(filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(name)), filepath.Base(name)))); at != nil {
		return at[1], true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if sum := k.exports[name]; sum != "" {
		return sum, true
	}
	sum, err := fileSum(name)
	if err != nil {
		return "", false
	}
	k.exports[name] = sum
	return sum, true
}
