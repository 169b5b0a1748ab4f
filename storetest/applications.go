package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// An application is stored whole, its writes are conditional like those of an
// endpoint, and lists go on behind an id.
func testApplications(t *testing.T, s Store) {
	a := must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Name: "Acme", Secrets: []string{"env:ACME"}, Rate: 5, MaxEndpoints: 2, Version: webhook.VersionNone}))(t)
	if a.Version != 1 || a.Created.IsZero() {
		t.Errorf("a new one is %+v", a)
	}
	if got := must(s.Application(t.Context(), "acme"))(t); got.Name != "Acme" || len(got.Secrets) != 1 || got.Rate != 5 || got.MaxEndpoints != 2 || got.Version != 1 || !got.Created.Equal(a.Created) {
		t.Errorf("stored is %+v", got)
	}
	wantErr(t, "there already", errOf(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Version: webhook.VersionNone})), webhook.ErrVersion)
	wantErr(t, "another version", errOf(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Version: 7})), webhook.ErrVersion)
	if a = must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Name: "Acme Corp", Version: 1}))(t); a.Version != 2 || a.Created.IsZero() {
		t.Errorf("replaced it is %+v", a)
	}
	for _, id := range []string{"b", "c", "d"} {
		must(s.PutApplication(t.Context(), webhook.Application{ID: id}))(t)
	}
	var ids []string
	for after := ""; ; {
		list := must(s.Applications(t.Context(), after, 3))(t)
		for _, a := range list {
			after = a.ID
			ids = append(ids, a.ID)
		}
		if len(list) < 3 {
			break
		}
	}
	if fmt.Sprint(ids) != "[acme b c d]" {
		t.Errorf("the list has %v", ids)
	}
	b := must(s.Application(t.Context(), "b"))(t)
	wantErr(t, "deleted as it is not", s.DeleteApplication(t.Context(), "b", b.Version+1), webhook.ErrVersion)
	check(t, s.DeleteApplication(t.Context(), "b", b.Version))
	wantErr(t, "deleted twice", s.DeleteApplication(t.Context(), "b", 0), webhook.ErrNotFound)
	wantErr(t, "deleted", errOf(s.Application(t.Context(), "b")), webhook.ErrNotFound)
}

// An endpoint keeps its application, which it is read with, and no application is
// deleted from under its endpoints.
func testTenants(t *testing.T, s Store) {
	endpoint := webhook.Endpoint{ID: "a", URL: "https://example.com/", Application: "acme", Types: []string{"order.*"}}
	wantErr(t, "no such application", errOf(s.PutEndpoint(t.Context(), endpoint)), webhook.ErrUnknownApplication)
	must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Secrets: []string{"env:ACME"}}))(t)
	must(s.PutApplication(t.Context(), webhook.Application{ID: "other"}))(t)
	must(s.PutEndpoint(t.Context(), endpoint))(t)
	endpoint.Application = "other"
	wantErr(t, "taken from its application", errOf(s.PutEndpoint(t.Context(), endpoint)), webhook.ErrTaken)
	endpoint.Application = ""
	wantErr(t, "taken out of its application", errOf(s.PutEndpoint(t.Context(), endpoint)), webhook.ErrTaken)
	must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Secrets: []string{"env:NEW"}}))(t)
	list := must(s.Endpoints(t.Context()))(t)
	if len(list) != 1 || list[0].Application != "acme" || len(list[0].Types) != 1 || list[0].Tenant == nil || list[0].Tenant.Version != 2 || list[0].Tenant.Secrets[0] != "env:NEW" {
		t.Fatalf("stored is %+v", list)
	}
	// Suspended by a write that has seen it, and not by one that has not.
	must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Suspended: true, Reason: "unpaid", Version: 2}))(t)
	a := must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Name: "Acme"}))(t)
	if e := must(s.Endpoint(t.Context(), "a"))(t); !a.Suspended || a.Reason != "unpaid" || !e.Tenant.Suspended || e.Tenant.Reason != "unpaid" || e.Tenant.Name != "Acme" {
		t.Errorf("suspended it is %+v, and of its endpoint %+v", a, e.Tenant)
	}
	a = must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", Version: a.Version}))(t)
	if got := must(s.Application(t.Context(), "acme"))(t); a.Suspended || got.Suspended || got.Reason != "" {
		t.Errorf("lifted it is %+v, stored %+v", a, got)
	}
	wantErr(t, "deleted with an endpoint", s.DeleteApplication(t.Context(), "acme", 0), webhook.ErrInUse)
}

// What an operator has disabled no one else enables: not its tenant, not by deleting the
// endpoint and adding it again, and not a process whose attempt was under way.
func testDisabledByOperator(t *testing.T, s Store) {
	must(s.PutApplication(t.Context(), webhook.Application{ID: "acme"}))(t)
	put := func(id, application string) {
		t.Helper()
		must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/", Application: application}))(t)
	}
	set := func(id string, state webhook.EndpointState, by webhook.Party, reason string, failing time.Time) error {
		return s.SetEndpointState(t.Context(), id, state, by, reason, failing)
	}
	is := func(what, id, want string) {
		t.Helper()
		e := must(s.Endpoint(t.Context(), id))(t)
		if got := fmt.Sprint(e.State, " ", e.DisabledBy, " ", e.Reason); got != want {
			t.Errorf("%s: it is %s, want %s", what, got, want)
		}
	}
	put("a", "acme")
	put("free", "")
	check(t, set("a", webhook.Disabled, webhook.ByTenant, "a pause", time.Time{}))
	is("its tenant disabled it", "a", "disabled tenant a pause")
	check(t, set("a", webhook.Disabled, webhook.ByForbear, "410", time.Time{}))
	is("an attempt under way had 410", "a", "disabled tenant a pause")
	check(t, set("a", webhook.Disabled, webhook.ByOperator, "abuse", time.Time{}))
	since := must(s.Endpoint(t.Context(), "a"))(t).Since
	for _, state := range []webhook.EndpointState{webhook.Disabled, webhook.Enabled} {
		check(t, set("a", state, webhook.ByForbear, "410", time.Now()))
		is("an attempt was under way", "a", "disabled operator abuse")
	}
	wantErr(t, "enabled by its tenant", set("a", webhook.Enabled, webhook.ByTenant, "", time.Time{}), webhook.ErrDisabledByOperator)
	check(t, set("a", webhook.Disabled, webhook.ByTenant, "mine", time.Time{}))
	put("a", "acme")
	is("put", "a", "disabled operator abuse")
	check(t, s.DeleteEndpoint(t.Context(), "a", 0))
	put("a", "acme")
	is("deleted and put again", "a", "disabled operator abuse")
	if e := must(s.Endpoint(t.Context(), "a"))(t); !e.Since.Equal(since) {
		t.Errorf("disabled since %v, want %v", e.Since, since)
	}
	check(t, set("a", webhook.Enabled, webhook.ByOperator, "", time.Time{}))
	is("the operator enabled it", "a", "enabled  ")
	check(t, set("a", webhook.Disabled, webhook.ByForbear, "410", time.Time{}))
	is("it responded 410", "a", "disabled forbear 410")
	check(t, set("a", webhook.Enabled, webhook.ByTenant, "", time.Time{}))
	is("its tenant enabled it", "a", "enabled  ")
	// An endpoint of the operator's own begins anew.
	check(t, set("free", webhook.Disabled, webhook.ByOperator, "old", time.Time{}))
	check(t, s.DeleteEndpoint(t.Context(), "free", 0))
	put("free", "")
	is("deleted and put again", "free", "enabled  ")
}

// Messages, dead letters and redrives say whose they are and are chosen by it, those of an
// endpoint that was deleted as well; a consumer's letter is no tenant's because its
// destination has the name of an endpoint.
func testByApplication(t *testing.T, s Store) {
	for id, application := range map[string]string{"a1": "acme", "a2": "acme", "b": "other", "free": ""} {
		if application != "" {
			must(s.PutApplication(t.Context(), webhook.Application{ID: application}))(t)
		}
		must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/", Application: application}))(t)
	}
	accept(t, s, false, message("m1", "", "a1", "a2", "b", "free"))
	accept(t, s, false, message("m2", "", "a1", "b"))
	names := func(f store.MessageFilter) string {
		for _, i := range must(s.Messages(t.Context(), f, 0, 100))(t).Messages {
			if want := map[string]string{"a1": "acme", "a2": "acme", "b": "other"}[i.Endpoint]; i.Application != want {
				t.Errorf("%s at %s is of %q", i.ID, i.Endpoint, i.Application)
			}
		}
		return fmt.Sprint(list(t, s, f, 2))
	}
	for _, d := range claim(t, s, "b", 10) {
		finish(t, s, deadLettered(d, "b-"+d.Message.ID))
	}
	finish(t, s, deadLettered(claim(t, s, "a1", 1)[0], "a1-m1"))
	finish(t, s, deadLettered(claim(t, s, "free", 1)[0], "free-m1"))
	check(t, s.DeleteEndpoint(t.Context(), "a2", 0))
	if n := must(s.Abandon(t.Context(), 10))(t); n != 1 {
		t.Fatalf("%d abandoned, want 1", n)
	}
	consumers := letter("consumers")
	consumers.Destination = "a1"
	check(t, s.Put(t.Context(), consumers))
	for _, c := range []struct {
		f    store.MessageFilter
		want string
	}{
		{store.MessageFilter{Application: "acme"}, "[m2@a1 m1@a2 m1@a1]"},
		{store.MessageFilter{Application: "acme", ID: "m1"}, "[m1@a2 m1@a1]"},
		{store.MessageFilter{Application: "acme", Endpoints: []string{"a1", "b"}}, "[m2@a1 m1@a1]"},
		{store.MessageFilter{Application: "acme", Endpoints: []string{"b"}}, "[]"},
		{store.MessageFilter{Application: "none"}, "[]"},
		{store.MessageFilter{}, "[m2@b m2@a1 m1@free m1@b m1@a2 m1@a1]"},
	} {
		if got := names(c.f); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
	for application, want := range map[string]int{"acme": 2, "other": 2, "none": 0, "": 6} {
		letters := must(s.List(t.Context(), queue.Filter{Application: application}))(t)
		if n := must(s.Count(t.Context(), queue.Filter{Application: application}))(t); n != want || len(letters) != want {
			t.Errorf("%q has %d letters, %d counted, want %d", application, len(letters), n, want)
		}
		for _, l := range letters {
			if application != "" && l.Application != application {
				t.Errorf("letter %s is of %q, chosen by %q", l.ID, l.Application, application)
			}
		}
	}
	for _, application := range []string{"acme", "other", ""} {
		check(t, s.PutJob(t.Context(), queue.Job{ID: "job-" + application, State: queue.JobPaused, Filter: queue.Filter{Application: application}}))
	}
	for application, want := range map[string]int{"acme": 1, "none": 0, "": 3} {
		jobs := must(s.JobPage(t.Context(), application, "", 100))(t)
		if len(jobs) != want || want == 1 && jobs[0].ID != "job-acme" {
			t.Errorf("%q has the redrives %+v", application, jobs)
		}
	}
}

// Of many endpoints that are added at once, as many come in as the application may
// have, and each of those can still be changed.
func testLimitOfEndpoints(t *testing.T, s Store) {
	must(s.PutApplication(t.Context(), webhook.Application{ID: "acme", MaxEndpoints: 3}))(t)
	put := func(i int) error {
		return errOf(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: fmt.Sprint("e", i), URL: "https://example.com/", Application: "acme"}))
	}
	var added atomic.Int64
	parallel(8, func(i int) {
		switch err := put(i); {
		case err == nil:
			added.Add(1)
		case !errors.Is(err, webhook.ErrTooManyEndpoints):
			t.Error(err)
		}
	})
	list := must(s.Endpoints(t.Context()))(t)
	if added.Load() != 3 || len(list) != 3 {
		t.Fatalf("%d were added and %d are stored, want 3", added.Load(), len(list))
	}
	for _, e := range list {
		e.URL = "https://example.com/new"
		must(s.PutEndpoint(t.Context(), e))(t)
	}
}
