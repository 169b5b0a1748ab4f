package driver

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// cache keeps what was found in packages, and what was learned of their
// functions, for later runs. A nil cache has nothing and keeps nothing. It is
// safe for concurrent use, also by several processes: an entry is written aside
// and renamed, and never changed.
// Faults of the file system are those of a cache miss: a run does not need it.
type cache struct {
	dir  string
	keys *keys
}

// cacheVariable names the variable that holds another folder for the cache.
const cacheVariable = "FORBEAR_LINT_CACHE"

// cacheDir returns the folder of the cache, or "" when the user has none.
func cacheDir() string {
	if dir := os.Getenv(cacheVariable); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "forbear", "lint")
}

// entry is what is kept of one package.
type entry struct {
	Findings []keptFinding
	Facts    []keptFact
}

// keptFinding is a finding with the parts that reports do not write.
type keptFinding struct {
	Finding    report.Finding
	Confidence rule.Confidence
	Callees    []string
	Within     string
	Module     string
	// Waiver is the index of the waiver that lifts it among those of the
	// settings, or -1.
	Waiver int
}

// newEntry keeps findings and facts.
func newEntry(found []*finding, facts []keptFact) *entry {
	e := &entry{Facts: facts}
	for _, f := range found {
		waiver := slices.Index(config.Current().Waivers, f.waiver)
		e.Findings = append(e.Findings, keptFinding{f.Finding, f.confidence, f.callees, f.within, f.module, waiver})
	}
	return e
}

// findings are those that were kept. A waiver that lifts one of them is used.
func (e *entry) findings() (found []*finding) {
	for _, k := range e.Findings {
		f := &finding{Finding: k.Finding, confidence: k.Confidence, callees: k.Callees, within: k.Within, module: k.Module}
		if waivers := config.Current().Waivers; k.Waiver >= 0 && k.Waiver < len(waivers) {
			f.waiver = waivers[k.Waiver]
			f.waiver.Use()
		}
		found = append(found, f)
	}
	return found
}

// newCache returns the cache below dir for runs of the given analyzers, whose
// facts it must know; nil without a folder.
func newCache(dir string, k *keys, analyzers []*analysis.Analyzer) *cache {
	if dir == "" || k == nil {
		return nil
	}
	seen := map[*analysis.Analyzer]bool{}
	var register func([]*analysis.Analyzer)
	register = func(list []*analysis.Analyzer) {
		for _, a := range list {
			if seen[a] {
				continue
			}
			seen[a] = true
			for _, f := range a.FactTypes {
				gob.Register(f)
			}
			register(a.Requires)
		}
	}
	register(analyzers)
	return &cache{dir, k}
}

// file is where the entry of a key lies. Two hundred and fifty-six folders keep
// each of them small.
func (c *cache) file(key string) string { return filepath.Join(c.dir, key[:2], key) }

// get returns the entry of a key, or nil. One that is damaged is as none.
func (c *cache) get(key string) *entry {
	data, err := os.ReadFile(c.file(key))
	if err != nil || len(data) < sha256.Size {
		return nil
	}
	sum := sha256.Sum256(data[sha256.Size:])
	if !bytes.Equal(sum[:], data[:sha256.Size]) {
		return nil
	}
	var e entry
	if gob.NewDecoder(bytes.NewReader(data[sha256.Size:])).Decode(&e) != nil {
		return nil
	}
	touch(c.file(key))
	return &e
}

// touch notes that an entry was used; an hour's exactness is enough, and
// spares most runs the writing.
func touch(name string) {
	if st, err := os.Stat(name); err == nil && time.Since(st.ModTime()) > time.Hour {
		_ = os.Chtimes(name, time.Time{}, time.Now())
	}
}

// put keeps an entry, behind a sum of its bytes.
func (c *cache) put(key string, e *entry) {
	var body bytes.Buffer
	if gob.NewEncoder(&body).Encode(e) != nil {
		return
	}
	sum := sha256.Sum256(body.Bytes())
	name := c.file(key)
	if os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(name), "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(append(sum[:], body.Bytes()...))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
}

// Bounds of the cache.
const (
	cacheAge   = 7 * 24 * time.Hour // since an entry was last used
	cacheBytes = 256 << 20
	trimEvery  = 24 * time.Hour
)

// ours are the names of entries, and of those that were not finished. The user may
// name a folder that holds other things, which trim must leave.
var ours = regexp.MustCompile(`^(?:[0-9a-f]{64}|new-\d+)$`)

// trim deletes what no run has used for a week, and the oldest of what is left
// until the rest fits the bounds; once a day.
// Files that writers have left behind go in the same way, and nothing else does.
func (c *cache) trim(now time.Time) {
	if c == nil {
		return
	}
	mark := filepath.Join(c.dir, "trimmed")
	if st, err := os.Stat(mark); err == nil && now.Sub(st.ModTime()) < trimEvery {
		return
	}
	if os.MkdirAll(c.dir, 0o700) != nil || os.WriteFile(mark, nil, 0o600) != nil {
		return
	}
	type file struct {
		name string
		used time.Time
		size int64
	}
	var files []file
	var total int64
	for i := range 256 {
		dir := filepath.Join(c.dir, fmt.Sprintf("%02x", i))
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, d := range list {
			info, err := d.Info()
			if err == nil && info.Mode().IsRegular() && ours.MatchString(d.Name()) {
				files = append(files, file{filepath.Join(dir, d.Name()), info.ModTime(), info.Size()})
				total += info.Size()
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if now.Sub(f.used) < cacheAge && total <= cacheBytes {
			break
		}
		os.Remove(f.name)
		total -= f.size
	}
}

// digest is a sum of named parts. Each is written with its length, so that two
// lists of parts never look the same.
type digest struct{ parts []byte }

func (d *digest) add(parts ...string) {
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p))
		d.parts = append(d.parts, sum[:]...)
	}
}

func (d *digest) sum() string {
	sum := sha256.Sum256(d.parts)
	return hex.EncodeToString(sum[:])
}
