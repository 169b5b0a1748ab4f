package durable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/sqlstore"
)

// lines is a log that may be read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with returns the lines that have a message.
func (l *lines) with(message string) (list []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.SplitSeq(l.b.String(), "\n") {
		var v map[string]any
		if json.Unmarshal([]byte(line), &v) == nil && strings.Contains(fmt.Sprint(v["msg"]), message) {
			list = append(list, v)
		}
	}
	return list
}

// Calls that are refused are counted, logged and audited, without what was brought.
func TestRefusedCallsShow(t *testing.T) {
	const failures = 10
	log := &lines{}
	s, _ := start(t, Options{Token: "the operator's own token", Logger: slog.New(slog.NewJSONHandler(log, nil))})
	root := "Bearer the operator's own token"
	for i := range failures {
		if status, _ := call(t, s, "GET", "/v1/endpoints/a%0Ab", "", "Authorization", fmt.Sprint("Bearer planted-guess-", i)); status != 401 {
			t.Fatalf("got %d", status)
		}
	}
	ro := token(t, s, `{"name":"ro","scope":"read-only"}`, "Authorization", root)
	if status, _ := call(t, s, "PUT", "/v1/applications/a", `{}`, "Authorization", ro); status != 403 {
		t.Fatalf("got %d", status)
	}
	found := log.with("calls to the delivery API refused")
	if len(found) == 0 || found[0]["level"] != "WARN" || found[0]["source"] != "192.0.2.1" || found[0]["calls"] != 1.0 || strings.ContainsAny(fmt.Sprint(found[0]["path"]), "\n") {
		t.Errorf("the log has %v", found)
	}
	_, v := call(t, s, "GET", "/v1/audit?action=refused", "", "Authorization", root)
	text := fmt.Sprint(v)
	if !strings.Contains(text, "1 call was refused recently, the latest from this address: the API token is missing") || !strings.Contains(text, "anonymous at 192.0.2.1") {
		t.Errorf("the audit has %s", text)
	}
	if all := text + log.b.String(); strings.Contains(all, "planted") {
		t.Errorf("a guess is shown in %s", all)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "delivery_api_refused_total" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if got["unauthorized"] != failures || got["forbidden"] != 1 {
		t.Errorf("counted are %v", got)
	}
}

// Of many refusals there is a line a second about each source and an entry a minute, with
// their number.
func TestRefusalsAreBounded(t *testing.T) {
	var f refusals
	now := time.Now()
	logged, said, lines, entries := int64(0), int64(0), 0, 0
	for range 1000 {
		l, e := f.count("192.0.2.1", now)
		if logged += l; l > 0 {
			lines++
		}
		if said += e; e > 0 {
			entries++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if lines != 100 || entries != 2 || logged != 991 || said != 601 {
		t.Errorf("%d lines of %d calls, %d entries of %d", lines, logged, entries, said)
	}
	if l, e := f.count("198.51.100.1", now); l != 10 || e != 0 {
		t.Errorf("another source: a line of %d calls, an entry of %d", l, e)
	}
}

// The API does not open with its last token: it says so, also when it begins anew.
func TestLastTokenIsRevoked(t *testing.T) {
	log := &lines{}
	o := Options{Database: t.TempDir() + "/forbear.db", Logger: slog.New(slog.NewJSONHandler(log, nil))}
	s, stop := start(t, o)
	const open = "requires no token"
	auth := token(t, s, `{"name":"ci","scope":"admin"}`)
	if status, _ := call(t, s, "GET", "/v1/endpoints", "", "Authorization", auth); status != 200 {
		t.Fatalf("got %d", status)
	}
	call(t, s, "GET", "/v1/endpoints", "") // from here on the process knows that tokens are demanded
	if status, _ := call(t, s, "DELETE", "/v1/tokens/ci", "", "Authorization", auth); status != 204 {
		t.Fatalf("got %d", status)
	}
	for _, with := range []string{"", auth} {
		if status, _ := call(t, s, "GET", "/v1/endpoints", "", "Authorization", with); status != 401 {
			t.Errorf("behind the last token, with %q: %d", with, status)
		}
	}
	if found := log.with("the last token of the delivery API was revoked"); len(found) != 1 || len(log.with(open)) != 0 {
		t.Errorf("the log has %v", found)
	}
	if _, made, err := s.DB.Tokens().Create(t.Context(), sqlstore.Token{Name: "next", Scope: sqlstore.ScopeAdmin, Creator: "ann"}, time.Hour); err != nil || made.Name != "next" {
		t.Fatal(err)
	}
	if err := s.DB.Tokens().Revoke(t.Context(), "next", "ann"); err != nil {
		t.Fatal(err)
	}
	stop()
	s, _ = start(t, o)
	if found := log.with(open); len(found) != 1 {
		t.Errorf("begun anew, the log has %v", found)
	}
	if status, _ := call(t, s, "GET", "/v1/endpoints", ""); status != 200 {
		t.Errorf("begun anew without a token: %d", status)
	}
}
