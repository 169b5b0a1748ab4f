package queue

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/forbear-go/forbear/deadletter"
)

// Cipher encrypts and decrypts exported letters, as sqlstore.Cipher does those
// in a store.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// sealedLine is a line of an encrypted export.
type sealedLine struct {
	Sealed []byte `json:"sealed"`
}

// Export writes a letter as one line of JSON, as it is; see [deadletter.Letter.Mask]. A payload
// that was left out is null: in base64, any text in its place would pass for one.
func Export(w io.Writer, l deadletter.Letter) error {
	return export(w, struct {
		deadletter.Letter
		Payload []byte `json:"payload"`
	}{l, l.Payload})
}

// export writes v without escaping HTML: payloads are shown as they are.
func export(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// ExportSealed writes a letter as one line that [ReadExport] makes a letter of
// again, under the same cipher.
func ExportSealed(w io.Writer, l deadletter.Letter, c Cipher) error {
	plain, err := json.Marshal(l)
	if err != nil {
		return err
	}
	sealed, err := c.Seal(plain)
	if err != nil {
		return err
	}
	return export(w, sealedLine{sealed})
}

// maxLine bounds a line of an export: a row of the outbox of 2.25 MiB in base64, twice
// over when it is sealed, and its history.
const maxLine = 8 << 20

// ReadExport calls each for every letter of an export, plain or sealed. c may be
// nil when none is sealed. An error names the line. An error of each ends the reading. A
// line that is not a letter, such as one that was cut short, is passed over; the error is
// that of the first.
func ReadExport(r io.Reader, c Cipher, each func(deadletter.Letter) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	var unread error
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		l, err := readLine(lines.Bytes(), c)
		if err != nil {
			unread = cmp.Or(unread, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		if err := each(l); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return cmp.Or(unread, fmt.Errorf("line %d: %w", n+1, err))
	}
	return unread
}

// readLine reads a letter, decrypting a sealed one. A line without id or
// queue is JSON of another kind.
func readLine(line []byte, c Cipher) (l deadletter.Letter, err error) {
	var s sealedLine
	if err := json.Unmarshal(line, &s); err != nil {
		return l, fmt.Errorf("not a letter: %w", err)
	}
	if s.Sealed != nil {
		if c == nil {
			return l, errors.New("encrypted: give its key with --encryption-key-file")
		}
		if line, err = c.Open(s.Sealed); err != nil {
			return l, err
		}
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return l, fmt.Errorf("not a letter: %w", err)
	}
	if l.ID == "" || l.Queue == "" {
		return l, errors.New("not a letter: id or queue is missing")
	}
	return l, nil
}
