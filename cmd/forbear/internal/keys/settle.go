package keys

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/idempotency"
)

// word is an operator's word on a held record: that it was done, and with what
// response, or that it was not.
type word struct {
	done   int // the status that duplicates get, or 0
	undone bool
	header http.Header
	body   string // a file, or "-"
	fence  int64
	why    string

	response *idempotency.Response // of done
}

func (w *word) flags(f *flag.FlagSet) {
	w.header = http.Header{}
	f.IntVar(&w.done, "done", 0, "settle: it happened; duplicates get this `status`")
	f.Func("header", "settle --done: a header `line` of the response, Name: value; may be repeated", func(line string) error {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return errors.New("want Name: value")
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		w.header[name] = append(w.header[name], strings.Trim(value, " \t"))
		return nil
	})
	f.StringVar(&w.body, "body", "", "settle --done: the body of the response, a `file`; - for standard input")
	f.BoolVar(&w.undone, "undone", false, "settle: it did not happen; the next attempt runs")
	f.Int64Var(&w.fence, "fence", 0, "settle: only the run of this `number`, as show prints it")
	f.StringVar(&w.why, "why", "", "settle: the `reason`")
}

// maxBody is more than [idempotency.Response.Check] lets pass.
const maxBody = 2 << 20

// read checks the flags, and makes the response of them. What is not final, such
// as 503, is refused: duplicates would receive it for good, and take it for a
// reason to retry.
func (w *word) read(in io.Reader) error {
	switch {
	// Exactly one of the two, and no default: either can do harm when
	// it is wrong.
	case (w.done == 0) != w.undone:
		return errors.New("settle needs --done STATUS (the work was done) or --undone (it was not)")
	case w.why == "":
		return errors.New("settle needs --why REASON")
	case w.undone && (len(w.header) > 0 || w.body != ""):
		return errors.New("--header and --body need --done")
	case w.undone:
		return nil
	}
	w.response = &idempotency.Response{Status: w.done}
	if len(w.header) > 0 {
		w.response.Header = w.header
	}
	if w.body != "" {
		var err error
		if w.response.Body, err = readBody(w.body, in); err != nil {
			return err
		}
	}
	return durable.CheckSettled(w.response)
}

// readBody reads a file, or standard input.
func readBody(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, maxBody))
}

// settle resolves a held record as done or as undone.
func (k *keys) settle(ctx context.Context) error {
	id := idempotency.ID{Scope: k.filter.Scope, Key: k.filter.Key}
	if id.Scope == "" {
		records, err := k.db.records.List(ctx, k.filter)
		switch {
		case err != nil:
			return err
		case len(records) > 1:
			return fmt.Errorf("%d scopes have a record of this key: add --scope (see forbear keys show)", len(records))
		case len(records) == 0:
			return idempotency.ErrNotFound
		}
		id = records[0].ID
	}
	res := idempotency.Resolution{Response: k.word.response, By: k.Actor, Why: k.word.why, Fence: k.word.fence}
	err := durable.Records{Store: k.db.records, Audit: k.db.audit}.Settle(ctx, id, res)
	if errors.Is(err, durable.ErrEventResponse) {
		return errors.New("an event has no response: use --done without --header and --body")
	}
	if err == nil {
		fmt.Fprintln(k.Out, "settled")
	}
	return err
}
