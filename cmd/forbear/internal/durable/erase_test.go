package durable

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// allOf returns all that a database has: the files of SQLite as they are, and each row
// of PostgreSQL.
func allOf(t *testing.T, database string) []byte {
	t.Helper()
	var all bytes.Buffer
	if !strings.HasPrefix(database, "postgres") {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			text, err := os.ReadFile(database + suffix)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.Bytes()
	}
	db := outside(t, database)
	var tables []string
	read := func(text string, f func(string)) {
		rows, err := db.QueryContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var v string
			if err := rows.Scan(&v); err != nil {
				t.Fatal(err)
			}
			f(v)
		}
	}
	read(`SELECT tablename FROM pg_tables WHERE tablename LIKE 'forbear%'`, func(name string) { tables = append(tables, name) })
	for _, name := range tables {
		// Bytes are shown as they are, where they can be.
		read(`SELECT encode(convert_to(x::text, 'UTF8'), 'escape') FROM `+name+` x`, func(v string) { all.WriteString(v) })
		if name == "forbear_messages" {
			read(`SELECT encode(body, 'escape') FROM forbear_messages`, func(v string) { all.WriteString(v) })
		}
		if name == "forbear_letters" {
			read(`SELECT encode(sealed, 'escape') FROM forbear_letters`, func(v string) { all.WriteString(v) })
		}
	}
	return all.Bytes()
}

// Of a message that is erased there is nothing in the database: not of what was sent
// by the API or by the outbox, was delivered, waits or is dead, nor of what was
// responded.
func TestErasedIsNotInTheDatabase(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		s, stop := start(t, Options{Database: database, Poll: 20 * time.Millisecond, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			resp := answer(map[string]int{"/ok": 200, "/bad": 400, "/down": 503}[r.URL.Path])
			if strings.HasPrefix(r.Header.Get("webhook-id"), "m") {
				resp.Body = io.NopCloser(strings.NewReader("planted-response"))
			}
			return resp, nil
		})})
		defer stop()
		for _, e := range []string{"ok", "bad", "down"} {
			put(t, s, webhook.Endpoint{ID: e, URL: "https://example.com/" + e})
		}
		big := strings.Repeat("planted-payload ", 4000)
		for i := range 30 { // others before and behind it
			send(t, s, webhook.Message{ID: fmt.Sprint("other", i), Endpoints: []string{"ok", "bad"}, Body: []byte(`"other"`)})
			if i == 15 {
				send(t, s, webhook.Message{
					ID: "m1", Endpoints: []string{"ok", "bad", "down"}, Key: "planted-key", Subject: "planted-subject", Body: []byte(big),
					Headers: []webhook.Header{{Name: "X-Plan", Value: "planted-header"}},
				})
				if _, err := outside(t, database).ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m2', 'bad', 'planted-outbox'), ('m3', 'none', 'planted-refused'), ('m4', 'ok', $1)`, bytes.Repeat([]byte("large"), 600_000)); err != nil {
					t.Fatal(err)
				}
			}
		}
		letters := waitLetters(t, s, 34)
		var of [3]int
		for _, l := range letters {
			for i, id := range []string{"m1", "m2", "m3"} {
				if l.EventID == id {
					of[i]++
				}
			}
		}
		if of != [3]int{1, 1, 1} || !bytes.Contains(allOf(t, database), []byte("planted-payload")) {
			t.Fatalf("before: %v letters", of)
		}
		kept := func() (n int) {
			if err := outside(t, database).QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_outbox_refused`).Scan(&n); err != nil {
				t.Error(err)
			}
			return n
		}
		if n := kept(); n != 1 {
			t.Errorf("%d rows that are too large are kept", n)
		}
		for _, id := range []string{"m1", "m2", "m3", "m4"} {
			for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				status, v := call(t, s, "DELETE", "/v1/messages/"+id, "", "X-Forbear-Actor", "ann")
				if status == 204 {
					break
				}
				if status != 409 || time.Now().After(end) {
					t.Fatalf("%s: %d %v", id, status, v)
				}
			}
		}
		if n := kept(); n != 0 {
			t.Errorf("%d rows that are too large are still kept", n)
		}
		all := allOf(t, database)
		for _, planted := range []string{"planted", "cGxhbnRlZ", "xhbnRlZC", "bGFudGVk"} { // and in base64
			if i := bytes.Index(all, []byte(planted)); i >= 0 {
				t.Errorf("the database has %q", all[max(i-60, 0):min(i+60, len(all))])
			}
		}
		if !bytes.Contains(all, []byte(`"other"`)) && !bytes.Contains(all, []byte("Im90aGVyI")) {
			t.Error("what is not erased is not found either")
		}
		status, v := call(t, s, "GET", "/v1/messages/m1?reveal=true", "")
		if c := v["contents"].([]any)[0].(map[string]any); status != 200 || c["erased"] != true || len(v["deliveries"].([]any)) != 3 {
			t.Errorf("shown is %d %v", status, v)
		}
		if status, _ := call(t, s, "DELETE", "/v1/messages/none", ""); status != 404 {
			t.Errorf("of none: %d", status)
		}
		if _, v := call(t, s, "GET", "/v1/audit", ""); !strings.Contains(fmt.Sprint(v), "message-erase") {
			t.Error("the audit does not have it")
		}
	})
}

// Many are erased as a filter chooses them, in batches: of a tenant all that was delivered,
// waits or is dead, and nothing of another's. What is being sent is left, and erased when
// it is asked for again, when the rest is not done again.
func TestErasedByAFilter(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		sending := make(chan struct{})
		s, _ := start(t, Options{Database: database, Token: "the operator's own token", Poll: 20 * time.Millisecond, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				<-sending
			}
			return answer(cmp.Or(map[string]int{"/bad": 400}[r.URL.Path], 200)), nil
		})})
		release := sync.OnceFunc(func() { close(sending) })
		t.Cleanup(release)
		root := "Bearer the operator's own token"
		do := func(auth, method, path, body string) map[string]any {
			t.Helper()
			status, v := call(t, s, method, path, body, "Authorization", auth)
			if status >= 300 {
				t.Fatalf("%s %s %s: %d %v", method, path, body, status, v)
			}
			return v
		}
		for _, app := range []string{"acme", "other"} {
			do(root, "PUT", "/v1/applications/"+app, `{}`)
		}
		for id, app := range map[string]string{"ok": "acme", "bad": "acme", "slow": "acme", "late": "acme", "theirs": "other"} {
			do(root, "PUT", "/v1/endpoints/"+id, `{"url":"https://example.com/`+id+`","application":"`+app+`"}`)
		}
		do(root, "POST", "/v1/endpoints/late/disable", "")
		do(root, "PATCH", "/v1/endpoints/slow", `{"policy":{"per_attempt":"10m"}}`) // it is under way until the test says
		acme := token(t, s, `{"name":"ac","scope":"application","application":"acme"}`, "Authorization", root)
		const many = 150 // more than a batch
		for i := range many {
			do(root, "POST", "/v1/messages", fmt.Sprintf(`{"id":"m%d","endpoint":"ok","type":"t","payload":"planted-%d"}`, i, i))
		}
		for _, endpoint := range []string{"bad", "slow", "late"} {
			do(root, "POST", "/v1/messages", `{"id":"`+endpoint+`","endpoint":"`+endpoint+`","type":"t","payload":"planted-too"}`)
		}
		do(root, "POST", "/v1/messages", `{"id":"kept","endpoint":"ok","type":"u","payload":"other-type"}`)
		do(root, "POST", "/v1/messages", `{"id":"m1","endpoint":"theirs","type":"t","payload":"other-tenant"}`)
		waitFor(t, "one to be dead", func() bool { return len(do(root, "GET", "/v1/dead-letters", "")["dead_letters"].([]any)) == 1 })
		waitFor(t, "all to arrive", func() bool { return s.Dispatcher.Stats().Delivered == many+2 })
		waitFor(t, "one to be under way", func() bool {
			return strings.Contains(fmt.Sprint(do(root, "GET", "/v1/messages?endpoint=slow&state=sending", "")), "slow")
		})
		erase := func(more string) (done, batches int, refused string) {
			t.Helper()
			for after := ""; ; batches++ {
				v := do(acme, "POST", "/v1/messages/erase", `{"filter":{"type":"t"},"after":"`+after+`"`+more+`}`)
				done += int(v["done"].(float64))
				if v["refused"] != nil {
					refused += fmt.Sprint(v["refused"])
				}
				if after = v["next"].(string); after == "" {
					return done, batches + 1, refused
				}
			}
		}
		if status, v := call(t, s, "POST", "/v1/messages/erase", `{"filter":{}}`, "Authorization", root); status != 400 {
			t.Errorf("without a filter: %d %v", status, v)
		}
		if status, v := call(t, s, "POST", "/v1/messages/erase", `{"filter":{"application":"other"}}`, "Authorization", acme); status != 403 {
			t.Errorf("another's: %d %v", status, v)
		}
		if done, _, _ := erase(`,"dry_run":true`); done != many+3 {
			t.Errorf("%d would be erased", done)
		}
		if done, batches, refused := erase(""); done != many+2 || batches != 2 || refused != "map["+store.WhyUnderWay+":1]" {
			t.Errorf("%d erased in %d batches, left: %s", done, batches, refused)
		}
		// Of two that are erased, and of one between them that is under way.
		v := do(acme, "POST", "/v1/messages/erase", `{"filter":{"endpoint":["bad","slow","late"]}}`)
		if want := fmt.Sprint(map[string]int{store.WhyErased: 2, store.WhyUnderWay: 1}); v["done"] != 0.0 || fmt.Sprint(v["refused"]) != want {
			t.Errorf("erased again: %v, want %s", v, want)
		}
		release()
		waitFor(t, "the last one to arrive", func() bool { return s.Dispatcher.Stats().Delivered == many+3 })
		waitFor(t, "it to be erased", func() bool {
			done, _, refused := erase("")
			return done == 1 && refused == ""
		})
		all := allOf(t, database)
		for _, planted := range []string{"planted", "cGxhbnRlZ", "xhbnRlZC", "bGFudGVk"} { // and in base64
			if i := bytes.Index(all, []byte(planted)); i >= 0 {
				t.Errorf("the database has %q", all[max(i-60, 0):min(i+60, len(all))])
			}
		}
		for id, payload := range map[string]string{"kept": "other-type", "m1": "other-tenant"} {
			if v := fmt.Sprint(do(root, "GET", "/v1/messages/"+id+"?reveal=true", "")["contents"]); !strings.Contains(v, base64.StdEncoding.EncodeToString([]byte(`"`+payload+`"`))) {
				t.Errorf("%s is %s", id, v)
			}
		}
		v = do(acme, "POST", "/v1/messages/erase", `{"filter":{"endpoint":["ok"],"state":["delivered"],"until":"2099-01-01T00:00:00Z"}}`)
		if v["done"] != 1.0 || fmt.Sprint(v["refused"]) != fmt.Sprintf("map[%s:%d]", store.WhyErased, usualPage-1) {
			t.Errorf("chosen by what is kept of them: %v", v)
		}
		if trail := fmt.Sprint(do(root, "GET", "/v1/audit?action=message-erase&target=m7", "")); strings.Count(trail, "who:ac ") != 1 {
			t.Errorf("the trail is %s", trail)
		}
	})
}

// What waits and what has arrived can be read, on record: the payload, headers and
// responses. A tenant sees and erases its own part alone.
func TestPayloadIsRevealed(t *testing.T) {
	s, stop := start(t, Options{Token: "the operator's own token", Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
	defer stop()
	root := "Bearer the operator's own token"
	call(t, s, "PUT", "/v1/applications/acme", `{}`, "Authorization", root)
	call(t, s, "PUT", "/v1/endpoints/mine", `{"url":"https://example.com/","application":"acme"}`, "Authorization", root)
	call(t, s, "PUT", "/v1/endpoints/theirs", plain, "Authorization", root)
	acme := token(t, s, `{"name":"ac","scope":"application","application":"acme"}`, "Authorization", root)
	reader := token(t, s, `{"name":"board","scope":"read-only"}`, "Authorization", root)
	call(t, s, "POST", "/v1/messages", `{"id":"m1","endpoints":["mine","theirs"],"type":"t","payload":{"planted":1},"headers":[{"name":"X-Plan","value":"planted"}]}`, "Authorization", root)
	call(t, s, "POST", "/v1/messages", `{"id":"late","endpoint":"mine","payload":"planted","not_before":"2099-01-01T00:00:00Z"}`, "Authorization", root)
	for i := range maxContents + 1 { // of others, under an id that is its own as well
		id := fmt.Sprint("other", i)
		call(t, s, "PUT", "/v1/endpoints/"+id, plain, "Authorization", root)
		call(t, s, "POST", "/v1/messages", fmt.Sprintf(`{"id":"1","endpoint":%q,"payload":%d}`, id, i), "Authorization", root)
	}
	call(t, s, "POST", "/v1/messages", `{"id":"1","endpoint":"mine","payload":"planted"}`, "Authorization", root)
	waitFor(t, "all to arrive", func() bool { return s.Dispatcher.Stats().Delivered == 2+maxContents+2 })
	show := func(path, auth string, want int) string {
		t.Helper()
		status, v := call(t, s, "GET", path, "", "Authorization", auth)
		if status != want {
			t.Errorf("%s: %d %v", path, status, v)
		}
		return fmt.Sprint(v["contents"])
	}
	if got := show("/v1/messages/m1", acme, 200); strings.Contains(got, "planted") || strings.Contains(got, "theirs") || strings.Contains(got, "payload") || !strings.Contains(got, "type:t") {
		t.Errorf("without reveal: %s", got)
	}
	if got := show("/v1/messages/m1?reveal=true", acme, 200); !strings.Contains(got, "eyJwbGFudGVkIjoxfQ==") || !strings.Contains(got, "value:planted") || strings.Contains(got, "theirs") {
		t.Errorf("delivered: %s", got)
	}
	if got := show("/v1/messages/late?reveal=true", root, 200); !strings.Contains(got, "InBsYW50ZWQi") {
		t.Errorf("waiting: %s", got)
	}
	if got := show("/v1/messages/1?reveal=true", acme, 200); !strings.Contains(got, "InBsYW50ZWQi") || strings.Contains(got, "other") {
		t.Errorf("under an id that others have: %s", got)
	}
	show("/v1/messages/m1?reveal=true", reader, 403)
	if status, _ := call(t, s, "DELETE", "/v1/messages/m1", "", "Authorization", reader); status != 403 {
		t.Errorf("erased by a reader: %d", status)
	}
	if status, v := call(t, s, "DELETE", "/v1/messages/m1", "", "Authorization", acme); status != 204 {
		t.Errorf("its own: %d %v", status, v)
	}
	if got := show("/v1/messages/m1?reveal=true", root, 200); !strings.Contains(got, "eyJwbGFudGVkIjoxfQ==") || !strings.Contains(got, "erased:true") {
		t.Errorf("another's part: %s", got)
	}
	if got := show("/v1/messages/m1?reveal=true", acme, 200); strings.Contains(got, "eyJw") {
		t.Errorf("its own part: %s", got)
	}
	_, v := call(t, s, "GET", "/v1/audit", "", "Authorization", root)
	if text := fmt.Sprint(v); !strings.Contains(text, "action:reveal") || !strings.Contains(text, "target:message late") || !strings.Contains(text, "who:ac") {
		t.Errorf("the audit is %s", text)
	}
}

// A row of the outbox that waits for a suspended application is erased where it is, and
// does not come back.
func TestErasedRowDoesNotComeBack(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		sent := &arrivals{}
		s, stop := start(t, Options{Database: database, Poll: 20 * time.Millisecond, Transport: sent})
		defer stop()
		call(t, s, "PUT", "/v1/applications/acme", `{}`)
		call(t, s, "PUT", "/v1/endpoints/e", `{"url":"https://example.com/e","application":"acme"}`)
		call(t, s, "PATCH", "/v1/applications/acme", `{"suspended":true,"reason":"test"}`)
		if _, err := outside(t, database).ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, application, endpoint, body) VALUES
			('r1', 'acme', NULL, '1'), ('r2', NULL, 'e', '1'), ('r3', 'acme', NULL, '1'), ('r4', 'acme', NULL, '1')`); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the rows to be aside", func() bool {
			_, v := call(t, s, "GET", "/v1/stats", "")
			return fmt.Sprint(v["outbox"].(map[string]any)["aside"]) == "4"
		})
		for id, endpoints := range map[string][]string{"r1": {store.DestinationOf(&webhook.Message{Application: "acme"})}, "r2": {"e"}} {
			if n, err := s.DB.Webhooks().Erase(t.Context(), id, []string{"other"}, "ann"); n != 0 || err != nil {
				t.Errorf("%s for others: %d, %v", id, n, err)
			}
			if n, err := s.DB.Webhooks().Erase(t.Context(), id, endpoints, "ann"); n != 1 || err != nil {
				t.Errorf("%s: %d, %v", id, n, err)
			}
		}
		if status, v := call(t, s, "DELETE", "/v1/messages/r3", ""); status != 204 {
			t.Errorf("%d %v", status, v)
		}
		call(t, s, "PATCH", "/v1/applications/acme", `{"suspended":false}`)
		sent.wait(t, "r4 at /e")
	})
}
