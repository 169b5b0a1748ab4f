package sqlstore

import (
	"bytes"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear/deadletter"
)

// FuzzOutboxRow reads rows as an application may have written them: one that
// has nothing wrong with it is kept as it is, and of one that has, the letter
// has everything.
func FuzzOutboxRow(f *testing.F) {
	f.Add("m1", "a", "order.shipped", `[{"name":"X-A","value":"1"}]`, []byte(`{"n":1}`), int64(0), uint8(0))
	f.Add("m1", "a", "\xff\x00", `[{"name":"X-A","value":"\ud800"}]`, []byte{0xff}, int64(-1), uint8(1))
	f.Add("", "", "", `{}`, []byte(nil), time.Now().UnixNano(), uint8(2))
	f.Add("m", "a", "t", `null`, []byte("x"), time.Now().UnixMicro(), uint8(3))
	f.Fuzz(func(t *testing.T, id, endpoint, kind, headers string, body []byte, due int64, types uint8) {
		as := func(bit uint8, s string) any { // SQLite has what was inserted
			if types&bit != 0 {
				return []byte(s)
			}
			return s
		}
		var at any = due
		if types&8 != 0 {
			at = float64(due)
		}
		o := &outboxRow{}
		o.fill([]any{as(1, id), as(2, endpoint), as(4, kind), nil, nil, nil, nil, nil, nil, nil, as(16, headers), at, as(32, string(body)), int64(0)})
		if o.bad != nil {
			l := o.letter()
			if l.Queue == "" || l.Reason != deadletter.ReasonInvalid || l.Description == "" || len(l.Description) > deadletter.MaxDescription {
				t.Errorf("letter %+v", l)
			}
			if !o.large && !bytes.Equal(l.Payload, body) {
				t.Errorf("the letter has %q, the row %q", l.Payload, body)
			}
			return
		}
		m := o.msg
		if m.ID != id || m.Endpoints[0] != endpoint || m.Type != kind || !bytes.Equal(m.Body, body) {
			t.Errorf("got %+v", m)
		}
		if y := m.NotBefore.Year(); !m.NotBefore.IsZero() && (y < 2001 || y > 9999) {
			t.Errorf("not before %v", m.NotBefore)
		}
		if !utf8.ValidString(kind + headers) {
			return // a dispatcher refuses it
		}
		s := &DB{now: time.Now}
		e, err := s.encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.decode(m.ID, e.meta, e.made, e.body)
		if err != nil || !again.SameContent(&m) {
			t.Errorf("kept as %+v, %v; was %+v", again, err, m)
		}
	})
}
