package queue_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// mirror is a cipher that only turns bytes around.
type mirror struct{}

func (mirror) Seal(plain []byte) ([]byte, error) {
	out := make([]byte, len(plain))
	for i, b := range plain {
		out[len(plain)-1-i] = ^b
	}
	return out, nil
}

func (m mirror) Open(sealed []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, errors.New("cut short")
	}
	return m.Seal(sealed)
}

// What has expired is exported, encrypted where the store is, and only then
// removed; a letter that is being redriven stays.
func TestRetentionExports(t *testing.T) {
	for name, cipher := range map[string]queue.Cipher{"plain": nil, "sealed": mirror{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &memstore.Store{}
				bury(t, s, 20)
				if _, err := s.BeginRedrive(t.Context(), "l007", "job", "ann", 3); err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				r := &queue.Retention{Store: s, Dir: dir, Cipher: cipher}
				if n, err := r.Once(t.Context()); n != 0 || err != nil {
					t.Fatalf("young letters: removed %d, %v", n, err)
				}
				time.Sleep(queue.DefaultRetention + time.Hour)
				if n, err := r.Once(t.Context()); n != 19 || err != nil {
					t.Fatalf("removed %d, %v; want all but the one on its way", n, err)
				}
				files, err := filepath.Glob(filepath.Join(dir, "dead-letters-*.jsonl"))
				if err != nil || len(files) != 1 {
					t.Fatalf("files %v, %v", files, err)
				}
				info, err := os.Stat(files[0])
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("others may read it: %v, %v", info.Mode(), err)
				}
				text, err := os.ReadFile(files[0])
				if err != nil {
					t.Fatal(err)
				}
				for _, secret := range []string{"Bearer planted", "planted answer", base64.StdEncoding.EncodeToString([]byte(`{"card":"4111"}`))} {
					if strings.Contains(string(text), secret) == (cipher != nil) {
						t.Errorf("%q in the file: %v", secret, cipher == nil)
					}
				}
				ids := map[string]bool{}
				err = queue.ReadExport(bytes.NewReader(text), cipher, func(l deadletter.Letter) error {
					ids[l.ID] = string(l.Payload) == `{"card":"4111"}` && l.Headers[0].Value == "Bearer planted"
					return nil
				})
				if err != nil || len(ids) != 19 || !ids["l000"] || ids["l007"] {
					t.Errorf("read back %v, %v", ids, err)
				}
				alerts, _ := s.AlertPage(t.Context(), 0, 10)
				if len(alerts) != 2 || alerts[0].Reason != "expired" {
					t.Errorf("alerts are %+v", alerts)
				}
			})
		})
	}
}

// Without a folder, or when it cannot be written to, nothing is removed.
func TestRetentionKeepsWhatItCannotExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bury(t, s, 3)
		time.Sleep(queue.DefaultRetention + time.Hour)
		for _, dir := range []string{"", filepath.Join(t.TempDir(), "missing")} {
			r := &queue.Retention{Store: s, Dir: dir}
			if n, err := r.Once(t.Context()); n != 0 || (err == nil) != (dir == "") {
				t.Errorf("%q: removed %d, %v", dir, n, err)
			}
		}
		if n, _ := s.Count(t.Context(), queue.Filter{}); n != 3 {
			t.Errorf("%d letters left of 3", n)
		}
		alerts, _ := s.AlertPage(t.Context(), 0, 10)
		if len(alerts) != 2 || alerts[0].Reason != "retention_full" {
			t.Errorf("alerts are %+v", alerts)
		}
	})
}

// A process that dies, or a disk that is full, leaves half a line. The letters that are
// exported behind it, and removed, can be read.
func TestRetentionBehindHalfALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		bury(t, s, 3)
		time.Sleep(queue.DefaultRetention + time.Hour)
		name := filepath.Join(t.TempDir(), "dead-letters-"+time.Now().UTC().Format("2006-01-02")+".jsonl")
		if err := os.WriteFile(name, []byte(`{"id":"half","que`), 0o600); err != nil {
			t.Fatal(err)
		}
		r := &queue.Retention{Store: s, Dir: filepath.Dir(name)}
		if n, err := r.Once(t.Context()); n != 3 || err != nil {
			t.Fatalf("removed %d, %v", n, err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		err = queue.ReadExport(bytes.NewReader(text), nil, func(deadletter.Letter) error { read++; return nil })
		if read != 3 || err == nil || !strings.HasPrefix(err.Error(), "line 1: ") {
			t.Errorf("%d of 3 letters can be read, %v", read, err)
		}
	})
}

func TestReadExportFaults(t *testing.T) {
	good := `{"id":"l","queue":"q","reason":"r"}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":        {good + "x\n", "line 2: not a letter"},
		"no letter":      {good + "\n{}\n", "line 3: not a letter"},
		"another type":   {`{"id":7}`, "line 1: not a letter"},
		"without a key":  {`{"sealed":"YWJj"}`, "line 1: encrypted"},
		"a line too far": {strings.Repeat("x", 5<<20), "line 1: "},
	} {
		err := queue.ReadExport(strings.NewReader(c.text), nil, func(deadletter.Letter) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What is read is a letter, and what is written is read again as it was.
func FuzzReadExport(f *testing.F) {
	f.Add([]byte(`{"id":"l","queue":"q"}`))
	f.Add([]byte("{\"sealed\":\"YWJj\"}\n\n{\"sealed\":\"\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = queue.ReadExport(bytes.NewReader(text), mirror{}, func(l deadletter.Letter) error {
			if l.ID == "" || l.Queue == "" {
				t.Errorf("no letter: %+v", l)
			}
			var b bytes.Buffer
			if err := queue.ExportSealed(&b, l, mirror{}); err != nil {
				return nil // a time that JSON does not know
			}
			n := 0
			err := queue.ReadExport(&b, mirror{}, func(again deadletter.Letter) error {
				n++
				if again.ID != l.ID || !bytes.Equal(again.Payload, l.Payload) {
					t.Errorf("got %+v, want %+v", again, l)
				}
				return nil
			})
			if err != nil || n != 1 {
				t.Errorf("%d letters, %v", n, err)
			}
			return nil
		})
	})
}
