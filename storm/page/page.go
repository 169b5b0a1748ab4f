// Package page is the simulator's page: sliders, curves that follow them, the
// built-in cases, a policy file of the user's, five policies side by side, and the
// herd. Its files are embedded; it needs no build step and no network. Of the
// scripts, controls.js makes a scenario, chart.js draws, and app.js asks and shows.
//
// Experimental: what this package exports may change in any version.
package page

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm"
	"github.com/forbear-go/forbear/storm/internal/parallel"
	"github.com/forbear-go/forbear/storm/internal/report"
)

//go:embed static
var static embed.FS

// Limits of what a request may cost. The page is for a laptop or an internal
// network, and its sliders make many requests a second.
const (
	// maxPolicy is the size of a policy file, in bytes; app.js names it, too. maxBody is that
	// of a request: a policy file as JSON, and about 1 KiB.
	maxPolicy = 256 << 10
	maxBody   = 4 * maxPolicy
	// quick is how long a run may take before the page takes a sample, if nothing ends
	// well in it: most take a quarter of that.
	quick = 60 * time.Millisecond
	// maxTime bounds one run of a page request.
	maxTime = 2 * time.Second
	// busy is the number of requests that are computed at once.
	busy = 2
	// bins is the number of points of a curve: about half of its pixels on a phone, as a
	// sample has few calls in each.
	bins = 200
)

// ReadPolicies returns the policies in the text of a policy file, by dependency. Faults
// that are joined [*storm.FieldError] are shown one by one; none may hold a secret.
type ReadPolicies func(text []byte) (map[string]forbear.Policy, error)

// Handler returns the page, at "/", and what it asks, below "/api/". With read
// it takes policy files; nil refuses them. It keeps none of them; mount it
// below a prefix with http.StripPrefix.
func Handler(read ReadPolicies) http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		panic(err)
	}
	index = bytes.Replace(index, []byte("<!-- words -->"), []byte(report.Words), 1)
	h := &handler{slots: make(chan struct{}, busy), read: read}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(index)
	})
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("POST /api/run", h.run)
	// The page fills its menu from the named scenarios.
	mux.HandleFunc("GET /api/scenarios", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(storm.Named())
	})
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return http.NewCrossOriginProtection().Handler(secure(mux))
}

// secure sets the headers of every response: nothing is loaded from elsewhere, and
// no other site may frame the page.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// handler computes. Its slots bound how many requests it computes at once; others
// wait for one, for as long as their client does.
type handler struct {
	slots chan struct{}
	read  ReadPolicies
}

// request is what the page asks. Each named variant is laid over the scenario;
// "" is the scenario as it is.
type request struct {
	Scenario storm.Scenario `json:"scenario"`
	Variants []string       `json:"variants"`
	// Herd asks for the waves of so many clients that fail at once.
	Herd int `json:"herd,omitzero"`
	// Policy, if set, replaces that of every fleet.
	Policy *policy `json:"policy,omitzero"`
}

// problem is an error as RFC 9457 has it, with one entry for each field that is
// wrong, for the page to show beside the slider.
type problem struct {
	Type   string              `json:"type"`
	Title  string              `json:"title"`
	Status int                 `json:"status"`
	Detail string              `json:"detail,omitempty"`
	Errors []*storm.FieldError `json:"errors,omitempty"`
}

// refuse responds with a problem.
func refuse(w http.ResponseWriter, status int, err error) {
	p := problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: err.Error()}
	for _, f := range storm.FieldErrors(err) {
		if f.Path != "" {
			p.Errors = append(p.Errors, f)
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}

// run computes what the page asks for. When the client has gone, as it does when the
// slider has moved on, the work ends and nothing is written.
func (h *handler) run(w http.ResponseWriter, r *http.Request) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-r.Context().Done():
		return
	}
	var q request
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("unreadable request: %w", err))
		return
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, errors.New("unreadable request: text after the document"))
		return
	}
	start := time.Now()
	names, err := h.apply(&q)
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err)
		return
	}
	results, err := compute(r.Context(), q)
	if err != nil {
		if r.Context().Err() == nil {
			refuse(w, http.StatusUnprocessableEntity, err)
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	all := herds(r.Context(), q)
	_ = json.NewEncoder(w).Encode(response{float64(time.Since(start).Microseconds()) / 1e3, results, all, names})
}

// compute runs the variants side by side, each with the same seed. It returns the
// first error in the order of the variants.
func compute(ctx context.Context, q request) ([]result, error) {
	if len(q.Variants) == 0 || len(q.Variants) > 8 {
		return nil, fmt.Errorf("%d variants: want 1 to 8", len(q.Variants))
	}
	known := map[string]storm.Variant{"": {Title: "as set"}}
	for _, v := range storm.Variants() {
		known[v.Name] = v
	}
	for _, name := range q.Variants {
		if _, ok := known[name]; !ok {
			return nil, fmt.Errorf("no variant is called %q", name)
		}
	}
	if d := q.Scenario.Duration; q.Scenario.Bin == 0 && d > 0 {
		q.Scenario.Bin = max(d/bins, storm.Duration(time.Millisecond))
	}
	return parallel.Map(ctx, len(q.Variants), nil, func(i int) (result, error) {
		s, v := q.Scenario, known[q.Variants[i]]
		if v.Name != "" {
			s = s.With(v)
		}
		r, err := one(ctx, s)
		if err != nil {
			return result{}, err
		}
		return resultOf(v, r), nil
	})
}

// one runs s, as a sample where all of it would take longer than a slider can wait,
// and refuses what takes too long all the same.
func one(ctx context.Context, s storm.Scenario) (*storm.Result, error) {
	o := storm.Options{Within: quick}
	e, err := s.Estimate(o)
	if err != nil {
		return nil, err
	}
	if e.Time > maxTime {
		return nil, fmt.Errorf("this scenario needs about %v and the page allows %v: run it with forbear sim run", e.Time.Round(time.Second), maxTime)
	}
	return storm.Run(ctx, s, o)
}
