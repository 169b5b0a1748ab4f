package idempotency

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// SpoolOptions say where a [Backlog] keeps what must outlive the process. Path is
// required.
type SpoolOptions struct {
	// Path is the file, which is made with mode 0600 if it is not there. Only one
	// process has it at a time; a second one takes it over when the first has ended.
	Path string
	// MaxBytes bounds the file, in bytes. Default 64 MiB. It is emptied whenever
	// nothing waits.
	MaxBytes int64
	// Cipher encrypts what is in the file, responses above all. Nil: it is in the
	// clear, as in a database without a cipher. A sqlstore.Cipher is one.
	Cipher interface {
		Seal(plain []byte) ([]byte, error)
		Open(sealed []byte) ([]byte, error)
	}
}

// Spool gives the backlog a file, and begins to write what a process before this
// one has left in it. From then on an end that is kept is in the file, synced, before
// its response goes out. While another process has the file, ends are kept in memory
// alone; the log says so, and when the other has ended.
//
// Lines that a crash has torn are passed over, and logged.
func (b *Backlog) Spool(o SpoolOptions) error {
	if o.Path == "" {
		return errors.New("idempotency: spool without a path")
	}
	if o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes); o.MaxBytes < 0 {
		return fmt.Errorf("idempotency: spool of %d bytes", o.MaxBytes)
	}
	b.mu.Lock()
	b.start() // for its channel
	closed, twice := b.closed, b.file != nil || b.over
	b.mu.Unlock()
	if twice {
		return errors.New("idempotency: the backlog has a spool already, or is closed")
	}
	s, err := openSpool(o)
	if !errors.Is(err, errLocked) {
		if err != nil {
			return fmt.Errorf("idempotency: spool: %w", err)
		}
		return b.adopt(s)
	}
	b.log(slog.LevelWarn, "idempotency: another process has the spool: until it ends, what is kept is in memory alone", slog.String("spool", o.Path))
	go b.inherit(o, closed)
	return nil
}

// spoolEvery is how often a process looks on average whether another has left its
// file.
const spoolEvery = time.Second

// inherit takes the file when the process that has it has ended.
func (b *Backlog) inherit(o SpoolOptions, closed <-chan struct{}) {
	for {
		t := time.NewTimer(wait.Jitter(2 * spoolEvery))
		select {
		case <-closed:
			t.Stop()
			return
		case <-t.C:
		}
		s, err := openSpool(o)
		if errors.Is(err, errLocked) {
			continue
		}
		if err == nil {
			err = b.adopt(s)
		}
		if err != nil {
			b.log(slog.LevelError, "idempotency: the spool cannot be taken over", slog.String("error", err.Error()))
		}
		return
	}
}

// adopt reads what is in a file, puts into it what is kept already, and uses it. An
// end that cannot be decrypted is an error: it must not be lost for a missing key.
func (b *Backlog) adopt(s *spool) error {
	found, damaged, err := s.load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || b.over {
		_ = s.close()
		if err != nil {
			err = fmt.Errorf("idempotency: spool: %w", err)
		}
		return err
	}
	if damaged > 0 {
		b.log(slog.LevelError, "idempotency: lines of the spool are damaged, their outcomes are unknown", slog.Int("lines", damaged))
	}
	if len(found) > 0 {
		b.log(slog.LevelWarn, "idempotency: the spool has ends of runs that the store has not heard of", slog.Int("found", len(found)))
	}
	for _, k := range b.kept {
		if k.at, err = s.add(k); err != nil {
			b.log(slog.LevelError, "idempotency: the spool takes nothing", slog.String("error", err.Error()))
			break
		}
	}
	b.file = s
	for _, k := range found {
		_ = b.insert(k) // one that is outdated is written over
	}
	b.start()
	return nil
}

// spool is the file of a [Backlog]: a line for each end, with a checksum. Nil is
// none, into which nothing is written and in which nothing is found. It is safe for
// concurrent use.
type spool struct {
	SpoolOptions
	mu   sync.Mutex
	f    *os.File
	size int64
}

// place is where an end is in the file. The zero value is nowhere.
type place struct{ offset, length int64 }

// spooled is an end as a line has it.
type spooled struct {
	Ending
	Since time.Time `json:"since"`
}

var (
	errLocked    = errors.New("another process has it")
	errSpoolFull = errors.New("it is full")
	errDamaged   = errors.New("damaged line")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// openSpool opens and locks the file, which is for no other user to read.
func openSpool(o SpoolOptions) (*spool, error) {
	f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", o.Path)
	}
	if err == nil && info.Size() > o.MaxBytes {
		err = fmt.Errorf("%s has %d bytes, more than the bound of %d", o.Path, info.Size(), o.MaxBytes)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err == nil {
		err = lockFile(f)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &spool{SpoolOptions: o, f: f}, nil
}

// load returns the ends in the file, oldest first, and leaves it ready to be appended
// to. damaged counts the lines that are none.
func (s *spool) load() (found []*keptEnding, damaged int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := bufio.NewReader(s.f); ; {
		line, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		if err != nil { // what is left is no whole line
			damaged += min(len(line), 1)
			break
		}
		at := place{s.size, int64(len(line))}
		s.size += at.length
		switch x, err := s.decode(line); {
		case errors.Is(err, errDamaged):
			damaged++
		case err != nil:
			return nil, 0, err
		default:
			found = append(found, &keptEnding{end: x.Ending, since: x.Since, size: x.size(), at: at})
		}
	}
	return found, damaged, s.f.Truncate(s.size)
}

// add appends an end and syncs the file.
func (s *spool) add(k *keptEnding) (place, error) {
	if s == nil {
		return place{}, nil
	}
	line, err := s.encode(spooled{k.end, k.since})
	if err != nil {
		return place{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{s.size, int64(len(line))}
	if s.size+at.length > s.MaxBytes {
		return place{}, errSpoolFull
	}
	if _, err = s.f.WriteAt(line, s.size); err == nil {
		err = s.f.Sync()
	}
	if err != nil {
		return place{}, errors.Join(err, s.f.Truncate(s.size)) // half a line must not be followed by another
	}
	s.size += at.length
	return at, nil
}

// read returns the end at a place.
func (s *spool) read(at place) (Ending, error) {
	if s == nil {
		return Ending{}, errDamaged
	}
	line := make([]byte, at.length)
	if _, err := s.f.ReadAt(line, at.offset); err != nil {
		return Ending{}, err
	}
	x, err := s.decode(line)
	return x.Ending, err
}

// A line is the checksum of what follows it, in hexadecimal, a blank, and the end in
// JSON, or the box that the cipher made of it in base64.

func (s *spool) encode(x spooled) ([]byte, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	if s.Cipher != nil {
		box, err := s.Cipher.Seal(text)
		if err != nil {
			return nil, err
		}
		text = base64.StdEncoding.AppendEncode(nil, box)
	}
	return append(append(fmt.Appendf(nil, "%08x ", crc32.Checksum(text, castagnoli)), text...), '\n'), nil
}

func (s *spool) decode(line []byte) (x spooled, err error) {
	sum, text, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if err != nil || uint32(want) != crc32.Checksum(text, castagnoli) {
		return x, errDamaged
	}
	if len(text) > 0 && text[0] != '{' {
		if s.Cipher == nil {
			return x, errors.New("encrypted, and no key is configured")
		}
		box, err := base64.StdEncoding.AppendDecode(nil, text)
		if err != nil {
			return x, errDamaged
		}
		if text, err = s.Cipher.Open(box); err != nil {
			return x, err
		}
	}
	if err = json.Unmarshal(text, &x); err != nil {
		err = errDamaged
	}
	return x, err
}

// empty cuts the file off at its beginning: nothing waits any more.
func (s *spool) empty() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size == 0 {
		return nil
	}
	s.size = 0
	return s.f.Truncate(0)
}

// length returns the file's, in bytes.
func (s *spool) length() int64 {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// close gives the file to other processes.
func (s *spool) close() error {
	if s == nil {
		return nil
	}
	return s.f.Close()
}
