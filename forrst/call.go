package forrst

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/uuid"
)

// call is one logical call: the caller's envelope, and what its attempts
// change in it. It implements [httpretry.Envelope], and its attempts come
// one after the other, so that it needs no lock.
type call struct {
	ctx    context.Context
	r      *forbear.Retryer
	o      *Options
	warned *atomic.Bool
	text   []byte
	doc    node

	callerID string
	function string
	key      string // the idempotency key, the caller's or forbear's own
	keyMade  bool
	deadline time.Duration // the caller's; 0 means none
	options  *node         // the value of the deadline in text

	id     string // of the latest attempt
	longer int    // how often a longer deadline was asked for
	latest []byte // the latest response's body, when it was read
}

// newCall reads a request envelope; ok is false for anything else, which is
// then sent as plain HTTP. An envelope needs what names a call: protocol, id
// and function.
func (t *transport) newCall(text []byte) (c *call, ok bool) {
	doc, err := parse(text)
	if err != nil || !doc.object {
		return nil, false
	}
	c = &call{r: t.retryer, o: &t.o, warned: &t.warned, text: text, doc: doc}
	protocol, hasProtocol := doc.get("protocol")
	id, hasID := doc.get("id")
	what, hasCall := doc.get("call")
	if !hasProtocol || !hasID || !hasCall || !isForrst(text[protocol.start:protocol.end]) ||
		json.Unmarshal(text[id.start:id.end], &c.callerID) != nil || c.callerID == "" {
		return nil, false
	}
	if f, ok := what.get("function"); !ok || json.Unmarshal(text[f.start:f.end], &c.function) != nil {
		return nil, false
	}
	c.readOptions()
	return c, true
}

// readOptions reads the idempotency key and the deadline from the request's
// own extensions. What is not understood is left to the server.
func (c *call) readOptions() {
	list, ok := c.doc.get("extensions")
	if !ok {
		return
	}
	for i := range list.items {
		e := &list.items[i]
		var urn string
		if u, ok := e.get("urn"); !ok || json.Unmarshal(c.text[u.start:u.end], &urn) != nil {
			continue
		}
		options, ok := e.get("options")
		if !ok {
			continue
		}
		switch {
		case is(urn, "idempotency"):
			if k, ok := options.get("key"); ok {
				_ = json.Unmarshal(c.text[k.start:k.end], &c.key)
			}
		case is(urn, "deadline"):
			c.readDeadline(options)
		}
	}
}

// readDeadline reads {value, unit} as the protocol says, and {timeout: {value,
// unit}} as its servers read it. A point in time is left as it is.
func (c *call) readDeadline(options *node) {
	if t, ok := options.get("timeout"); ok {
		options = t
	}
	if d, ok := readDuration(c.text[options.start:options.end]); ok && d > 0 {
		c.deadline, c.options = d, options
	}
}

// Begin implements [httpretry.Envelope]. Forrst is always POST, so that the
// method says nothing: whether a call may be repeated depends on the
// function or on the key.
func (c *call) Begin(s *forbear.State) {
	s.NeedsKey = c.o.Idempotent == nil || !c.o.Idempotent(c.function)
	if p := c.r.Policy(); s.NeedsKey && c.key == "" && p.Keys == forbear.KeyGenerate {
		c.key, c.keyMade = uuid.New(), true
	}
	s.Key = c.key
}

// Send implements [httpretry.Envelope]. The first attempt is the caller's
// request unchanged. Each later one has a new id and the same key. When the
// last one exceeded its deadline, the next has twice as long, within the
// time that is left for the attempt.
func (c *call) Send(req *http.Request, number int, limit time.Duration) (time.Duration, error) {
	var edits []edit
	c.id = c.callerID
	if number > 1 {
		c.id = uuid.New()
		id, _ := c.doc.get("id")
		edits = append(edits, edit{id.start, id.end, strconv.Quote(c.id)})
	}
	deadline := c.deadline
	if deadline > 0 {
		if number > 1 {
			left := limit
			if d, ok := req.Context().Deadline(); ok {
				left = min(left, time.Until(d))
			}
			deadline = duration.Ceiling(deadline, max(left, time.Millisecond), c.longer)
			edits = append(edits, c.setDeadline(deadline)...)
		}
		// The server must not respond after the deadline, and a second
		// covers the way back: waiting any longer is in vain.
		limit = min(limit, duration.Sum(deadline, time.Second))
	}
	if c.keyMade {
		edits = append(edits, c.addKey())
	}
	body := apply(c.text, edits)
	// GetBody would send the first attempt's envelope again, under the old
	// id.
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = nil
	req.ContentLength = int64(len(body))
	return limit, nil
}

// setDeadline writes d in milliseconds, the one unit that holds every
// deadline without a fraction.
func (c *call) setDeadline(d time.Duration) []edit {
	value, _ := c.options.get("value")
	unit, _ := c.options.get("unit")
	return []edit{
		{value.start, value.end, strconv.FormatInt(d.Milliseconds(), 10)},
		{unit.start, unit.end, `"millisecond"`},
	}
}

// addKey adds the idempotency extension with the key that forbear generated,
// after the extensions that are there.
func (c *call) addKey() edit {
	entry := `{"urn":"` + prefix + `idempotency","options":{"key":"` + c.key + `"}}`
	list, ok := c.doc.get("extensions")
	if !ok || isNull(c.text[list.start:list.end]) {
		return setMember(&c.doc, "extensions", "["+entry+"]")
	}
	if len(list.items) > 0 {
		entry = "," + entry
	}
	return edit{list.end - 1, list.end - 1, entry}
}

// restoreID returns a response under the id that the caller sent: the caller
// matches responses by it, and knows of no other. A response to any other id
// is left unchanged.
func (c *call) restoreID(resp *http.Response) {
	if c.latest == nil || c.id == c.callerID {
		return
	}
	doc, err := parse(c.latest)
	if err != nil || !doc.object {
		return
	}
	id, ok := doc.get("id")
	var given string
	if !ok || json.Unmarshal(c.latest[id.start:id.end], &given) != nil || given != c.id {
		return
	}
	body := apply(c.latest, []edit{{id.start, id.end, strconv.Quote(c.callerID)}})
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), resp.Body}
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
}
