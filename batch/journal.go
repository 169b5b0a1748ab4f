package batch

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Mark is how an item ended.
type Mark byte

// The ends that a [Journal] knows. A postponed item is not in it: a later run does it.
const (
	Done Mark = '+' // fn has succeeded
	Dead Mark = '-' // it lies in the dead-letter queue
)

// Journal remembers which items are finished. Implementations are safe for
// concurrent use.
type Journal interface {
	// Finished reports whether an item is done or dead.
	Finished(id string) bool
	// Finish remembers the end of an item, beyond the end of the process when
	// it returns.
	Finish(id string, m Mark) error
}

// File is a [Journal] in a file, one line an item, for one process at a time.
// A mark survives the process, even one that is killed, as soon as Finish
// returns, and a power cut after at most a second: what is lost then is done
// again. It is safe for concurrent use.
type File struct {
	mu     sync.Mutex
	f      *os.File
	ids    map[string]Mark
	synced time.Time
	dirty  bool
	err    error // after which nothing is written any more
}

// A line is bounded, since the whole file is read into memory. One sync a
// second costs little, and bounds what a power cut can undo.
const (
	heading   = "forbear batch journal 1: "
	syncEvery = time.Second
	maxLine   = 64 << 10
)

var (
	// ErrJournal refuses a file that is not the journal of this job, or that is
	// damaged elsewhere than at its end.
	ErrJournal = errors.New("not a usable journal")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// OpenFile opens the journal of a job, or makes it. The job's name guards
// against the journal of another one. A last line that a crash has torn is cut
// off.
func OpenFile(path, job string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &File{f: f, synced: time.Now()}
	if err := j.load(job); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil { // so that the name survives, too
		_ = dir.Sync()
		_ = dir.Close()
	}
	return j, nil
}

// load reads what is there and leaves the file ready to be appended to.
func (j *File) load(job string) error {
	text, err := io.ReadAll(j.f)
	if err != nil {
		return err
	}
	head := heading + strconv.Quote(job) + "\n"
	ids, good, err := parse(text, head)
	if err != nil {
		return err
	}
	j.ids = ids
	if err := j.f.Truncate(int64(good)); err != nil {
		return err
	}
	if _, err := j.f.Seek(int64(good), io.SeekStart); err != nil {
		return err
	}
	if good == 0 {
		if _, err := j.f.WriteString(head); err != nil {
			return err
		}
	}
	return j.f.Sync()
}

// parse returns the items of a journal and the length of its good part. What
// follows the good part must be the torn end of a write: no good line.
func parse(text []byte, head string) (ids map[string]Mark, good int, err error) {
	ids = map[string]Mark{}
	// A power cut may leave zeros where the data did not get to the disk.
	if begun := bytes.TrimRight(text, "\x00"); len(begun) < len(head) && bytes.HasPrefix([]byte(head), begun) {
		return ids, 0, nil // made, and not more
	}
	if !bytes.HasPrefix(text, []byte(head)) {
		return nil, 0, fmt.Errorf("%w: it does not begin with %q", ErrJournal, head)
	}
	good = len(head)
	for at := good; at < len(text); {
		line, _, whole := bytes.Cut(text[at:], []byte("\n"))
		next := at + len(line) + 1
		id, mark, ok := parseLine(line)
		switch {
		case whole && ok && good == at:
			ids[id] = mark
			good = next
		case whole && ok:
			return nil, 0, fmt.Errorf("%w: damaged at byte %d", ErrJournal, good)
		}
		at = next
	}
	return ids, good, nil
}

// parseLine reads a mark, a checksum and an id: +1a2b3c4d "id".
func parseLine(line []byte) (id string, m Mark, ok bool) {
	if len(line) < 12 || line[9] != ' ' {
		return "", 0, false
	}
	sum, err := strconv.ParseUint(string(line[1:9]), 16, 32)
	if err != nil {
		return "", 0, false
	}
	id, err = strconv.Unquote(string(line[10:]))
	m = Mark(line[0])
	return id, m, err == nil && (m == Done || m == Dead) && uint32(sum) == checksum(m, line[10:])
}

// checksum covers the end and the id: a torn line must not pass for another
// item's.
func checksum(m Mark, quoted []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{byte(m)}, castagnoli), castagnoli, quoted)
}

// line is the inverse of parseLine, with the line feed that makes it whole.
func line(id string, m Mark) []byte {
	quoted := strconv.AppendQuote(nil, id)
	return append(append(fmt.Appendf(nil, "%c%08x ", m, checksum(m, quoted)), quoted...), '\n')
}

// Finished implements [Journal].
func (j *File) Finished(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.ids[id]
	return ok
}

// Len returns the number of finished items.
func (j *File) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.ids)
}

// Finish implements [Journal]. After an error the journal takes nothing more:
// a line may be torn, and the next must not follow it.
func (j *File) Finish(id string, m Mark) error {
	text := line(id, m)
	if len(text) > maxLine {
		return fmt.Errorf("the id is too long: %d bytes", len(id))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if _, j.err = j.f.Write(text); j.err != nil {
		return j.err
	}
	j.ids[id] = m
	j.dirty = true
	if time.Since(j.synced) >= syncEvery {
		j.sync()
	}
	return j.err
}

// sync writes to the disk what was only handed to the system; j.mu is held.
func (j *File) sync() {
	if j.dirty && j.err == nil {
		j.err = j.f.Sync()
		j.dirty, j.synced = false, time.Now()
	}
}

// Close syncs and closes the file.
func (j *File) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sync()
	err := j.err
	if err == nil || !errors.Is(err, os.ErrClosed) {
		err = errors.Join(err, j.f.Close())
	}
	j.err = os.ErrClosed
	return err
}
