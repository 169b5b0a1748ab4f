package idemfixture

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// check holds the results of a request, or of many of one name, to e.
func (r *runner) check(e *expectation) {
	t := r.t
	t.Helper()
	list := r.results[e.ID]
	if len(list) == 0 {
		t.Errorf("%s: no such request", e.ID)
		return
	}
	for _, res := range list {
		r.checkOne(e, res)
	}
	counts := map[string]int{}
	fresh := 0
	var body []byte
	for _, res := range list {
		counts[fmt.Sprint(res.status)]++
		if res.status != http.StatusCreated {
			continue
		}
		if !res.replayed() {
			fresh++
		}
		if e.All201SameBody && body != nil && !bytes.Equal(body, res.body) {
			t.Errorf("%s: two bodies: %.80s and %.80s", e.ID, body, res.body)
		}
		body = res.body
	}
	for status, want := range e.Counts {
		if !want.allows(counts[status]) {
			t.Errorf("%s: %d answers of %s, want %v", e.ID, counts[status], status, want)
		}
	}
	if e.NotReplayed201 != nil && fresh != *e.NotReplayed201 {
		t.Errorf("%s: %d fresh 201, want %d", e.ID, fresh, *e.NotReplayed201)
	}
	if n := r.rss(list[0].instance); e.MaxRSSMiB > 0 && n > e.MaxRSSMiB {
		t.Errorf("%s: %d MiB, at most %d", e.ID, n, e.MaxRSSMiB)
	}
}

func (r *runner) checkOne(e *expectation, res *result) {
	t := r.t
	t.Helper()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s\n  answer %v %v %.300s", e.ID, fmt.Sprintf(format, args...), res.status, res.header, res.body)
	}
	if e.Status != nil && !e.Status.allows(res.status) {
		bad("status %v, want %v", res.status, e.Status)
	}
	if e.Replayed != nil && res.replayed() != *e.Replayed {
		bad("replayed %v, want %v", res.replayed(), *e.Replayed)
	}
	r.checkBody(e, res, bad)
	for name, v := range e.HasHeaders {
		if got := res.header.Values(name); len(got) == 0 || v != nil && !slices.Contains(got, *v) {
			bad("header %s is %q", name, got)
		}
	}
	for name := range e.LacksHeaders {
		if got := res.header.Values(name); len(got) > 0 {
			bad("header %s is %q, want none", name, got)
		}
	}
	found := len(e.AnyHeader) == 0
	for name := range e.AnyHeader {
		found = found || len(res.header.Values(name)) > 0
	}
	if !found {
		bad("none of the headers")
	}
	if e.ContentType != "" && !strings.HasPrefix(res.header.Get("Content-Type"), e.ContentType) {
		bad("content type %q, want %q", res.header.Get("Content-Type"), e.ContentType)
	}
	after, err := strconv.Atoi(res.header.Get("Retry-After"))
	has := err == nil && after >= 0
	if status, ok := res.status.(int); ok && slices.Contains(e.RetryAfterOn, status) && !has {
		bad("no Retry-After")
	}
	if e.RetryAfter != nil && *e.RetryAfter != has {
		bad("Retry-After %v, want %v", has, *e.RetryAfter)
	}
	for _, limit := range []int{e.MaxMS, res.maxMS} {
		if limit > 0 && res.took.Milliseconds() > int64(limit) {
			bad("took %v, at most %d ms", res.took, limit)
		}
	}
	if e.FirstByteBeforMS > 0 && res.firstByte.Milliseconds() > int64(e.FirstByteBeforMS) {
		bad("first byte after %v, want it before %d ms", res.firstByte, e.FirstByteBeforMS)
	}
}

func (r *runner) checkBody(e *expectation, res *result, bad func(string, ...any)) {
	r.t.Helper()
	other := func(id string) *result {
		if list := r.results[id]; len(list) > 0 {
			return list[0]
		}
		bad("no request %q to compare with", id)
		return &result{}
	}
	if e.SameBodyAs != "" && !bytes.Equal(res.body, other(e.SameBodyAs).body) {
		bad("not the body of %s", e.SameBodyAs)
	}
	if e.NeverBodyOf != "" && bytes.Equal(res.body, other(e.NeverBodyOf).body) {
		bad("the body of %s", e.NeverBodyOf)
	}
	if e.NeverPartialOf != "" {
		whole := other(e.NeverPartialOf).body
		if status, ok := res.status.(int); ok && status < 300 && len(res.body) < len(whole) && bytes.HasPrefix(whole, res.body) {
			bad("a cut body of %s: %d of %d bytes", e.NeverPartialOf, len(res.body), len(whole))
		}
	}
	if e.DiffersFrom != "" {
		o := other(e.DiffersFrom)
		if len(e.HeaderDiffers) == 0 && bytes.Equal(res.body, o.body) {
			bad("the same as %s", e.DiffersFrom)
		}
		for name := range e.HeaderDiffers {
			if res.header.Get(name) == o.header.Get(name) {
				bad("header %s is that of %s", name, e.DiffersFrom)
			}
		}
	} else if len(e.HeaderDiffers) > 0 {
		bad("header_differs without differs_from is not understood")
	}
	if e.Body != nil && string(res.body) != *e.Body {
		bad("body, want %q", *e.Body)
	}
	if e.BodyBytes != nil && !e.BodyBytes.allows(len(res.body)) && !e.BodyBytes.allows(nil) {
		bad("%d bytes, want %v", len(res.body), e.BodyBytes)
	}
	if e.ProblemTypeNot != "" && strings.Contains(string(res.body), e.ProblemTypeNot) {
		bad("problem type %s", e.ProblemTypeNot)
	}
}
