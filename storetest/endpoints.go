package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A new configuration raises the version and leaves the state alone: an
// operator who corrects a URL must not enable by accident an endpoint that
// responded 410 Gone. Held is the dispatcher's own reading and is never
// stored.
func testEndpoints(t *testing.T, s Store) {
	e := must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/1", Concurrency: 3}))(t)
	if e.Version != 1 || e.State != webhook.Enabled || e.Since.IsZero() {
		t.Errorf("first version is %d, %s since %v", e.Version, e.State, e.Since)
	}
	// A database keeps microseconds, and the comparison is exact.
	since := time.Now().Truncate(time.Microsecond)
	check(t, s.SetEndpointState(t.Context(), "a", webhook.Disabled, webhook.ByForbear, "gone", since))
	e = must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/2", Held: "not stored"}))(t)
	list := must(s.Endpoints(t.Context()))(t)
	if len(list) != 1 || list[0].URL != "https://example.com/2" || list[0].Version != 2 || list[0].Held != "" {
		t.Fatalf("got %+v", list)
	}
	// What is returned has to be what is stored: the caller shows it
	// without reading again.
	for what, e := range map[string]webhook.Endpoint{"stored": list[0], "returned": e} {
		if e.State != webhook.Disabled || e.Reason != "gone" || !e.FailingSince.Equal(since) || e.Since.IsZero() || e.Version != 2 {
			t.Errorf("a new configuration must not enable, %s: %+v", what, e)
		}
	}
	if !e.Since.Equal(list[0].Since) {
		t.Errorf("disabled since %v as returned, %v as stored", e.Since, list[0].Since)
	}
	wantErr(t, "unknown endpoint", s.SetEndpointState(t.Context(), "none", webhook.Enabled, webhook.ByOperator, "", time.Time{}), webhook.ErrNotFound)
}

// A write that expects a version replaces that version or nothing. This is
// what keeps two operators from overwriting each other's change.
func testExpectedVersion(t *testing.T, s Store) {
	// The URL names the expected version, so that a refused write would
	// show.
	put := func(id string, expected int64) (webhook.Endpoint, error) {
		return s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: fmt.Sprint("https://example.com/", expected), Version: expected})
	}
	for _, c := range []struct {
		name     string
		id       string
		expected int64
		version  int64 // that it comes to; 0: refused
	}{
		{"a version of none", "a", 1, 0},
		{"none yet", "a", webhook.VersionNone, 1},
		{"none, and there is one", "a", webhook.VersionNone, 0},
		{"the stored one", "a", 1, 2},
		{"an older one", "a", 1, 0},
		{"a later one", "a", 3, 0},
		{"any", "a", 0, 3},
		{"of another endpoint", "b", 3, 0},
	} {
		e, err := put(c.id, c.expected)
		// Either the sentinel, on which callers branch, or the new
		// version.
		if c.version == 0 && !errors.Is(err, webhook.ErrVersion) || c.version != 0 && (err != nil || e.Version != c.version) {
			t.Errorf("%s: version %d, %v", c.name, e.Version, err)
		}
	}
	list := must(s.Endpoints(t.Context()))(t)
	if len(list) != 1 || list[0].Version != 3 || list[0].URL != "https://example.com/0" {
		t.Errorf("stored is %+v: a refused write wrote", list)
	}
}

// Of many writers that expect the same version exactly one wins, in each
// round. Other writes may share its transaction in a store that groups them,
// and must not suffer from the conflict.
func testVersionRace(t *testing.T, s Store) {
	const writers = 16
	// The first round creates the endpoint; the others change it.
	for _, expected := range []int64{webhook.VersionNone, 1, 2} {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for w := range writers {
			wg.Go(func() {
				url := fmt.Sprintf("https://example.com/%d/%d", expected, w)
				_, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: url, Version: expected})
				switch {
				case err == nil:
					mu.Lock()
					won = append(won, url)
					mu.Unlock()
				// A loser must lose by the sentinel, and not by a
				// deadlock or a broken transaction.
				case !errors.Is(err, webhook.ErrVersion):
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: fmt.Sprint("other-", w), URL: "https://example.com/"}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		list := must(s.Endpoints(t.Context()))(t)
		if len(won) != 1 || len(list) != 1+writers || list[0].URL != won[0] || list[0].Version != max(expected, 0)+1 {
			t.Errorf("expecting version %d: %d of %d won, %v; stored is %+v", expected, len(won), writers, won, list[0])
		}
	}
}

// Who reads the changes behind a mark learns of each put, of each other state and
// of each deletion, and of nothing else.
func testEndpointChanges(t *testing.T, s Store) {
	mark := int64(0)
	changes := func(what string, want, deleted []string) {
		t.Helper()
		c := must(s.EndpointChanges(t.Context(), mark))(t)
		var ids []string
		for _, e := range c.Endpoints {
			ids = append(ids, e.ID)
			if is := must(s.Endpoint(t.Context(), e.ID))(t); is.Version != e.Version || is.State != e.State || is.URL != e.URL {
				t.Errorf("%s: %+v, and alone %+v", what, e, is)
			}
		}
		slices.Sort(ids)
		slices.Sort(c.Deleted)
		if !slices.Equal(ids, want) || !slices.Equal(c.Deleted, deleted) || c.Mark < mark {
			t.Errorf("%s: changed %v, deleted %v, mark %d after %d; want %v and %v", what, ids, c.Deleted, c.Mark, mark, want, deleted)
		}
		mark = c.Mark
	}
	put := func(id string, version int64) webhook.Endpoint {
		return must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: fmt.Sprint("https://example.com/", id), Version: version}))(t)
	}
	changes("nothing", nil, nil)
	put("a", 0)
	put("b", webhook.VersionNone)
	changes("two are new", []string{"a", "b"}, nil)
	put("a", 1)
	changes("one was put", []string{"a"}, nil)
	changes("nothing since", nil, nil)
	check(t, s.SetEndpointState(t.Context(), "b", webhook.Disabled, webhook.ByForbear, "gone", time.Time{}))
	changes("another state", []string{"b"}, nil)
	check(t, s.SetEndpointState(t.Context(), "b", webhook.Disabled, webhook.ByForbear, "gone", time.Now()))
	changes("it fails", nil, nil)

	wantErr(t, "another version", s.DeleteEndpoint(t.Context(), "b", 2), webhook.ErrVersion)
	check(t, s.DeleteEndpoint(t.Context(), "b", 1))
	changes("one was deleted", nil, []string{"b"})
	_, err := s.Endpoint(t.Context(), "b")
	wantErr(t, "read", err, webhook.ErrNotFound)
	wantErr(t, "deleted again", s.DeleteEndpoint(t.Context(), "b", 0), webhook.ErrNotFound)
	wantErr(t, "another state", s.SetEndpointState(t.Context(), "b", webhook.Enabled, webhook.ByOperator, "", time.Time{}), webhook.ErrNotFound)
	_, err = s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "b", URL: "https://example.com/", Version: 1})
	wantErr(t, "put as it was", err, webhook.ErrVersion)
	if list := must(s.Endpoints(t.Context()))(t); len(list) != 1 || list[0].ID != "a" {
		t.Errorf("after a deletion: %+v", list)
	}
	// It comes back as a new one, whose version no one has seen.
	if e := put("b", webhook.VersionNone); e.Version != 2 || e.State != webhook.Enabled || e.Reason != "" || !e.FailingSince.IsZero() {
		t.Errorf("put again: %+v", e)
	}
	changes("it is back", []string{"b"}, nil)
	check(t, s.DeleteEndpoint(t.Context(), "b", 0))
	if _, err := s.Sweep(t.Context(), time.Hour, 10); err != nil {
		t.Error(err)
	}
	if c := must(s.EndpointChanges(t.Context(), 0))(t); len(c.Endpoints) != 1 || c.Mark <= mark {
		t.Errorf("all of it: %+v behind %d", c, mark)
	}
}

// Whoever reads while many write misses none, however their writes overlap.
func testEndpointChangeRace(t *testing.T, s Store) {
	const writers, writes = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range writes {
				if _, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: fmt.Sprint("e", w), URL: "https://example.com/"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen := map[string]int64{}
	mark := int64(0)
	for over := false; !over; {
		select {
		case <-done:
			over = true // and one look more
		default:
		}
		c := must(s.EndpointChanges(t.Context(), mark))(t)
		for _, e := range c.Endpoints {
			seen[e.ID] = e.Version
		}
		mark = c.Mark
	}
	for w := range writers {
		if v := seen[fmt.Sprint("e", w)]; v != writes {
			t.Errorf("endpoint %d is seen in version %d, want %d", w, v, writes)
		}
	}
}
