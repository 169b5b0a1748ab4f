package queue

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// export appends letters to a file of the day that only its owner may read, and syncs
// it and its name. Each is written in one piece, since another process may append to the
// same file, and begins a line, also behind one that a crash or a full disk has cut short.
func (r *Retention) export(list []deadletter.Letter) (ids []string, undecided int, err error) {
	name := filepath.Join(r.Dir, "dead-letters-"+time.Now().UTC().Format("2006-01-02")+".jsonl")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var line bytes.Buffer
	if cut, err := endsWithin(f); err != nil {
		return nil, 0, err
	} else if cut {
		line.WriteByte('\n')
	}
	for _, l := range list {
		if l.State == deadletter.Redriving || l.Unreadable != "" {
			continue
		}
		if l.State == deadletter.Dead {
			undecided++
		}
		if err := r.write(&line, l); err != nil {
			return nil, 0, err
		}
		if _, err := f.Write(line.Bytes()); err != nil {
			return nil, 0, err
		}
		line.Reset()
		ids = append(ids, l.ID)
	}
	return ids, undecided, errors.Join(f.Sync(), syncFolder(r.Dir))
}

// endsWithin reports whether a file ends within a line.
func endsWithin(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}

// syncFolder makes the names of a folder survive a power cut.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// write writes a letter, encrypted when there is a cipher.
func (r *Retention) write(w io.Writer, l deadletter.Letter) error {
	if r.Cipher != nil {
		return ExportSealed(w, l, r.Cipher)
	}
	return Export(w, l)
}
