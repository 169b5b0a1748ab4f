package forrst

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
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
	ctx        context.Context
	r          *forbear.Retryer
	o          *Options
	warned     *atomic.Bool
	text       []byte
	doc        map[string]json.RawMessage // of text
	extensions []json.RawMessage          // of doc

	callerID   string
	function   string
	key        string // the idempotency key, the caller's or forbear's own
	keyMade    bool
	deadline   time.Duration // the caller's; 0 means none
	deadlineAt int           // its place in the extensions

	id     string // of the latest attempt
	longer int    // how often a longer deadline was asked for
	latest []byte // the latest response's body, when it was read
}

// newCall reads a request envelope; ok is false for anything else, which is
// then sent as plain HTTP. An envelope needs what names a call: protocol, id
// and function.
func (t *transport) newCall(text []byte) (c *call, ok bool) {
	doc, ok := members(text)
	if !ok || !isForrst(doc["protocol"]) {
		return nil, false
	}
	c = &call{r: t.retryer, o: &t.o, warned: &t.warned, text: text, doc: doc}
	what, ok := members(doc["call"])
	if !ok || json.Unmarshal(doc["id"], &c.callerID) != nil || c.callerID == "" || json.Unmarshal(what["function"], &c.function) != nil {
		return nil, false
	}
	if list, there := doc["extensions"]; there && json.Unmarshal(list, &c.extensions) != nil {
		return nil, false
	}
	c.readOptions()
	return c, true
}

// readOptions reads the idempotency key and the deadline from the request's
// own extensions. What is not understood is left to the server.
func (c *call) readOptions() {
	for i, raw := range c.extensions {
		e, _ := members(raw)
		options, ok := members(e["options"])
		var urn string
		if !ok || json.Unmarshal(e["urn"], &urn) != nil {
			continue
		}
		switch {
		case is(urn, "idempotency"):
			_ = json.Unmarshal(options["key"], &c.key)
		case is(urn, "deadline"):
			if d, ok := readDuration(compose(limitOf(options))); ok && d > 0 {
				c.deadline, c.deadlineAt = d, i
			}
		}
	}
}

// limitOf returns the object that has the value and the unit of a deadline: the options, as
// the protocol says, or their member timeout, as its servers read it. A point in time is
// left as it is.
func limitOf(options map[string]json.RawMessage) map[string]json.RawMessage {
	if t, ok := options["timeout"]; ok {
		m, _ := members(t)
		return m
	}
	return options
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
// request unchanged, but for a key of forbear's own. Each later one has a new id and the
// same key. When the last one exceeded its deadline, the next has twice as long, within the
// time that is left for the attempt.
func (c *call) Send(req *http.Request, number int, limit time.Duration) (time.Duration, error) {
	c.id = c.callerID
	if number > 1 {
		c.id = uuid.New()
	}
	deadline := c.deadline
	if deadline > 0 {
		if number > 1 {
			left := limit
			if d, ok := req.Context().Deadline(); ok {
				left = min(left, time.Until(d))
			}
			deadline = duration.Ceiling(deadline, max(left, time.Millisecond), c.longer)
		}
		// The server must not respond after the deadline, and a second
		// covers the way back: waiting any longer is in vain.
		limit = min(limit, duration.Sum(deadline, time.Second))
	}
	body := c.text
	if number > 1 || c.keyMade {
		body = c.rewritten(deadline)
	}
	// GetBody would send the first attempt's envelope again, under the old
	// id.
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = nil
	req.ContentLength = int64(len(body))
	return limit, nil
}

// rewritten returns the envelope of an attempt, under its id. The deadline is written in
// milliseconds, the one unit that holds every deadline without a fraction.
func (c *call) rewritten(deadline time.Duration) []byte {
	doc, extensions := maps.Clone(c.doc), slices.Clone(c.extensions)
	doc["id"] = compose(c.id)
	if deadline != c.deadline {
		e, _ := members(extensions[c.deadlineAt])
		options, _ := members(e["options"])
		value := limitOf(options)
		value["value"], value["unit"] = strconv.AppendInt(nil, deadline.Milliseconds(), 10), compose("millisecond")
		if _, nested := options["timeout"]; nested {
			options["timeout"] = compose(value)
		}
		e["options"] = compose(options)
		extensions[c.deadlineAt] = compose(e)
	}
	if c.keyMade {
		extensions = append(extensions, compose(Extension{URN: prefix + "idempotency", Options: compose(map[string]string{"key": c.key})}))
	}
	if len(extensions) > 0 {
		doc["extensions"] = compose(extensions)
	}
	return compose(doc)
}

// compose writes v as JSON. It does not change the strings of raw messages in v.
func compose(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // of strings and valid JSON
	return bytes.TrimSpace(b.Bytes())
}

// restoreID returns a response under the id that the caller sent: the caller
// matches responses by it, and knows of no other. A response to any other id
// is left unchanged.
func (c *call) restoreID(resp *http.Response) {
	doc, ok := members(c.latest)
	var given string
	if !ok || c.id == c.callerID || json.Unmarshal(doc["id"], &given) != nil || given != c.id {
		return
	}
	doc["id"] = compose(c.callerID)
	body := compose(doc)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), resp.Body}
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
}
