package idempotency

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// SpoolOptions say where a [Backlog] keeps what must outlive the process. Path is
// required.
type SpoolOptions struct {
	// Path is the file, which is made with mode 0600 if it is not there. Only one
	// process has it at a time; a second one takes it over when the first has ended.
	Path string
	// Cipher encrypts what is in the file, responses above all. Nil: it is in the
	// clear, as in a database without a cipher. A sqlstore.Cipher is one.
	Cipher interface {
		Seal(plain []byte) ([]byte, error)
		Open(sealed []byte) ([]byte, error)
	}
}

// Spool gives the backlog a file, and begins to write what a process before this
// one has left in it. From then on an end that is kept is in the file, synced, before
// its response goes out. The file is emptied when nothing waits any more.
//
// While another process has the file, ends are kept in memory alone; the log says so,
// and the file is taken over when that process has ended. Lines that a crash has torn
// are skipped, and logged.
func (b *Backlog) Spool(o SpoolOptions) error {
	if o.Path == "" {
		return errors.New("idempotency: SpoolOptions.Path is empty")
	}
	b.mu.Lock()
	closed, twice := b.closing(), b.file != nil || b.over
	b.mu.Unlock()
	if twice {
		return errors.New("idempotency: the backlog already has a spool, or is closed")
	}
	err := b.adopt(o)
	if !errors.Is(err, errLocked) {
		return err
	}
	b.log(slog.LevelWarn, "idempotency: another process uses the spool: until it ends, outcomes are kept only in memory", slog.String("spool", o.Path))
	go func() {
		for errors.Is(err, errLocked) {
			if wait.Woken(context.Background(), wait.Jitter(2*spoolEvery), closed) {
				return
			}
			err = b.adopt(o)
		}
		if err != nil {
			b.log(slog.LevelError, "idempotency: the spool cannot be used", slog.String("error", err.Error()))
		}
	}()
	return nil
}

// spoolEvery is how often on average a process looks whether another has released its
// file.
const spoolEvery = time.Second

// adopt opens the file, reads what is in it, and adds what is kept already. An end that
// cannot be decrypted is an error: it must not be lost for a missing key.
func (b *Backlog) adopt(o SpoolOptions) error {
	s, err := openSpool(o, max(cmp.Or(b.MaxBytes, defaultMaxBytes), 0))
	if err != nil {
		return fmt.Errorf("idempotency: spool: %w", err)
	}
	found, damaged, err := s.load()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || b.over {
		return errors.Join(err, s.close())
	}
	if damaged > 0 {
		b.log(slog.LevelError, "idempotency: the spool has damaged lines: their outcomes are unknown", slog.Int("lines", damaged))
	}
	if len(found) > 0 {
		b.log(slog.LevelWarn, "idempotency: the spool has outcomes that are not yet in the store", slog.Int("found", len(found)))
	}
	b.file = s
	for _, k := range b.kept {
		b.save(k)
	}
	for _, k := range found {
		_ = b.insert(k) // it fails for an outdated one
	}
	b.start()
	return nil
}

// spool is the file of a [Backlog]: a line for each end, in JSON, or what the cipher
// made of that, in base64. Nil is an empty one. The backlog's mutex guards it.
type spool struct {
	SpoolOptions
	f         *os.File
	size, max int64 // in bytes
}

// spooled is an end as a line has it.
type spooled struct {
	Ending
	Since time.Time `json:"since"`
}

var (
	errLocked    = errors.New("another process uses it")
	errSpoolFull = errors.New("it is full")
	errDamaged   = errors.New("damaged line")
)

// openSpool opens and locks the file, which other users must not read.
func openSpool(o SpoolOptions, most int64) (*spool, error) {
	f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", o.Path)
	case info.Size() > most:
		err = fmt.Errorf("%s has %d bytes, want at most %d", o.Path, info.Size(), most)
	default:
		if err = f.Chmod(0o600); err == nil {
			err = lockFile(f)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &spool{SpoolOptions: o, f: f, max: most}, nil
}

// load returns the ends in the file, oldest first, and leaves it ready to be appended
// to. damaged counts the lines that cannot be read.
func (s *spool) load() (found []*keptEnding, damaged int, err error) {
	for r := bufio.NewReader(s.f); ; {
		line, err := r.ReadBytes('\n')
		if err == io.EOF { // what is left is torn
			return found, damaged + min(len(line), 1), s.f.Truncate(s.size)
		}
		if err != nil {
			return nil, 0, err
		}
		s.size += int64(len(line))
		switch x, err := s.decode(line); {
		case errors.Is(err, errDamaged):
			damaged++
		case err != nil:
			return nil, 0, err
		default:
			found = append(found, &keptEnding{end: x.Ending, since: x.Since, spooled: true})
		}
	}
}

// add appends an end and syncs the file.
func (s *spool) add(k *keptEnding) error {
	line, err := s.encode(spooled{k.end, k.since})
	if err != nil {
		return err
	}
	if s.size+int64(len(line)) > s.max {
		return errSpoolFull
	}
	if _, err = s.f.WriteAt(line, s.size); err == nil {
		err = s.f.Sync()
	}
	if err != nil {
		return errors.Join(err, s.f.Truncate(s.size)) // half a line must not be followed by another
	}
	s.size += int64(len(line))
	return nil
}

func (s *spool) encode(x spooled) ([]byte, error) {
	text, err := json.Marshal(x)
	if err == nil && s.Cipher != nil {
		if text, err = s.Cipher.Seal(text); err == nil {
			text = base64.StdEncoding.AppendEncode(nil, text)
		}
	}
	return append(text, '\n'), err
}

func (s *spool) decode(line []byte) (x spooled, err error) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	if len(text) > 9 && text[8] == ' ' { // after the checksum of earlier builds
		text = text[9:]
	}
	if len(text) > 0 && text[0] != '{' {
		if s.Cipher == nil {
			return x, errors.New("encrypted: give its key with --encryption-key-file")
		}
		if text, err = base64.StdEncoding.AppendDecode(nil, text); err != nil {
			return x, errDamaged
		}
		if text, err = s.Cipher.Open(text); err != nil {
			return x, err
		}
	}
	if json.Unmarshal(text, &x) != nil {
		err = errDamaged
	}
	return x, err
}

// empty cuts the file off at its beginning: nothing waits any more.
func (s *spool) empty() error {
	if s == nil || s.size == 0 {
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
	return s.size
}

// close releases the file for other processes.
func (s *spool) close() error {
	if s == nil {
		return nil
	}
	return s.f.Close()
}
