package idemfixture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// Begin is what the handler tells the ledger when it is entered.
type Begin struct {
	Request   string // the scenario's id of it
	Principal string
	Key       string
	Method    string
	Path      string
	Controls  map[string]string // the X-Test headers, without that prefix
}

// Begun is the answer.
type Begun struct {
	Execution int // of this key, from 1
	Controls  map[string]string
}

// Effect asks for an effect, or just for a number.
type Effect struct {
	Principal string
	Counter   string
	Count     bool
	Key       string
}

// Stop says that the handler has stopped somewhere; the answer is the resume.
type Stop struct{ Request, At string }

// Number is the ledger's count.
type Number struct{ N int }

// handle is the fixture's one handler, for all of its paths.
func (f *fixture) handle(w http.ResponseWriter, r *http.Request) {
	p, _ := principal(r)
	b := Begin{Request: r.Header.Get("X-Fixture-Request"), Principal: p, Key: r.Header.Get("Idempotency-Key"), Method: r.Method, Path: r.URL.Path, Controls: map[string]string{}}
	for name, values := range r.Header {
		if c, ok := strings.CutPrefix(name, "X-Test-"); ok {
			b.Controls[c] = values[0]
		}
	}
	var begun Begun
	if err := f.ask(r.Context(), "/begin", b, &begun); err != nil {
		panic(err)
	}
	x := &execution{f: f, w: w, r: r, principal: p, Begun: begun, request: b.Request}
	x.run()
}

type execution struct {
	Begun
	f                  *fixture
	w                  http.ResponseWriter
	r                  *http.Request
	principal, request string
}

// nth returns the entry of a sequence for this execution; the last one stays.
func (x *execution) nth(name, otherwise string) string {
	seq, ok := x.Controls[name]
	if !ok {
		return otherwise
	}
	list := strings.Split(seq, ",")
	return strings.TrimSpace(list[min(x.Execution, len(list))-1])
}

func (x *execution) run() {
	if ms, err := strconv.Atoi(x.Controls["Delay-Ms"]); err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	x.stop("before_effect")
	normal := "201"
	if x.r.Method != http.MethodPost {
		normal = "200"
	}
	status, err := strconv.Atoi(x.nth("Status-Seq", normal))
	if err != nil {
		panic(err)
	}
	panics := x.nth("Panic-Seq", "0") != "0"
	n := x.effect(x.Controls["Effect"] == "always" || status < 300 && !panics)
	x.stop("after_effect")
	if panics {
		panic("the scenario wants it")
	}
	x.answer(status, n)
}

func (x *execution) stop(at string) {
	if x.Controls["Stop-At"] == at {
		var n Number
		if err := x.f.ask(x.r.Context(), "/stop", Stop{x.request, at}, &n); err != nil {
			panic(err)
		}
	}
}

// effect does the work, where this request is one that has an effect, and
// returns its number.
func (x *execution) effect(wanted bool) int {
	counts := wanted && (x.r.Method == http.MethodPost || x.r.Method == http.MethodPatch) && x.r.URL.Path != "/counter"
	e := Effect{Principal: x.principal, Counter: strings.TrimPrefix(x.r.URL.Path, "/"), Count: counts, Key: x.r.Header.Get("Idempotency-Key")}
	if tx := idempotency.Tx(x.r.Context()); tx != nil {
		if counts {
			mark := "$1"
			if x.f.Store == "sqlite" {
				mark = "?"
			}
			if _, err := tx.ExecContext(x.r.Context(), `INSERT INTO fixture_effects (principal) VALUES (`+mark+`)`, x.principal); err != nil {
				panic(err)
			}
		}
		e.Count = false
	}
	var n Number
	if err := x.f.ask(x.r.Context(), "/effect", e, &n); err != nil {
		panic(err)
	}
	return n.N
}

func (x *execution) answer(status, n int) {
	h := x.w.Header()
	for line := range strings.SplitSeq(x.Controls["Set"], "|") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	if v := x.Controls["Retry-After"]; v != "" {
		h.Set("Retry-After", v)
	}
	if x.Controls["Silent"] != "" {
		return
	}
	if x.r.URL.Path == "/stream" {
		x.stream(n)
		return
	}
	size, zeros := strings.CutPrefix(x.Controls["Body"], "zeros:")
	if zeros {
		count, err := strconv.Atoi(size)
		if err != nil {
			panic(err)
		}
		x.w.WriteHeader(status)
		for block := make([]byte, 64<<10); count > 0; count -= len(block) {
			_, _ = x.w.Write(block[:min(len(block), count)])
		}
		return
	}
	if text, ok := x.Controls["Body"]; ok {
		x.w.WriteHeader(status)
		_, _ = io.WriteString(x.w, text)
		return
	}
	var in struct {
		Amount json.RawMessage `json:"amount"`
	}
	_ = json.NewDecoder(x.r.Body).Decode(&in)
	if in.Amount == nil {
		in.Amount = json.RawMessage("null")
	}
	h.Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	fmt.Fprintf(x.w, `{"id":"%s_%d","amount":%s}`, strings.Trim(strings.ReplaceAll(x.r.URL.Path, "/", "_"), "_"), n, in.Amount)
}

func (x *execution) stream(n int) {
	x.w.WriteHeader(http.StatusCreated)
	for i := range 10 {
		if i > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		fmt.Fprintf(x.w, "chunk %d of %d\n", i, n)
		x.w.(http.Flusher).Flush()
	}
}
