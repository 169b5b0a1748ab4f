package browser

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// nasty is markup in the place of a name. In an address it has to be escaped, too.
const nasty = `<img src=x onerror="window.ran=1">'"&amp;<script>window.ran=1</script>`

// infest puts nasty into each string that is empty, and into those below.
func infest(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.String() == "" && v.Type() == reflect.TypeFor[string]() {
			v.SetString(nasty)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Type.Kind() != reflect.Pointer && v.Type().Field(i).Name != "Policy" {
				infest(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			infest(v.Index(i))
		}
	}
}

// infested returns a database whose every name, header, payload and id is markup.
func infested(t *testing.T) string {
	t.Helper()
	file, ctx := t.TempDir()+"/forbear.db", t.Context()
	db, err := sqlstore.OpenSQLite(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = db.Migrate(ctx)
	check(err)
	_, err = db.Webhooks().PutEndpoint(ctx, webhook.Endpoint{ID: nasty, URL: "https://x.example/" + nasty, Unsigned: true, Headers: []webhook.Header{{Name: nasty, Value: nasty}}})
	check(err)
	check(db.Webhooks().SetEndpointState(ctx, nasty, webhook.Disabled, webhook.ByForbear, nasty, time.Now()))
	m := webhook.Message{Endpoints: []string{nasty}, Headers: make([]webhook.Header, 1), Body: []byte(nasty), NotBefore: time.Now().Add(time.Hour)}
	infest(reflect.ValueOf(&m).Elem())
	m.Application = ""
	_, err = db.Webhooks().Accept(ctx, []webhook.Message{m}, nil)
	check(err)
	l := deadletter.Letter{Queue: webhook.Queue, State: deadletter.Dead, DeadAt: time.Now(), Payload: []byte(nasty), Headers: make([]deadletter.Header, 1), History: make([]deadletter.Attempt, 1)}
	infest(reflect.ValueOf(&l).Elem())
	check(db.DeadLetters().Put(ctx, l))
	claim := idempotency.Claim{ID: idempotency.ID{Scope: nasty, Key: idempotency.Digest(nasty)}, Fingerprint: idempotency.Digest("f"), Operation: nasty, Owner: nasty, Lease: time.Minute, Retention: 48 * time.Hour}
	v, err := db.Idempotency().Claim(ctx, claim)
	check(err)
	check(db.Idempotency().Hold(ctx, idempotency.Token{ID: claim.ID, Owner: claim.Owner, Fence: v.Record.Fence}, nasty))
	check(db.Close())
	return file
}

// Markup is text wherever it comes from: each page shows it as it is, and nothing runs.
func TestMarkupIsText(t *testing.T) {
	in := staff(t, infested(t))
	b := signIn(t, in.instance, in.operator, desk)
	pages := b.crawl().Pages
	shown := 0
	for _, path := range append(pages, "/messages?type="+query(nasty), "/dead-letters?reason="+query(nasty), "/?q="+query(nasty)) {
		b.visit(path)
		if b.has("Show the payload") {
			b.press("Show the payload")
			b.untilText(nasty)
		}
		if ran := b.eval(`window.ran === undefined && !document.querySelector('img[src=x], script:not([src])')`); ran != "true" {
			t.Errorf("%s: markup has become part of the page", path)
		}
		if strings.Contains(b.text(), nasty) {
			shown++
		}
	}
	if shown < 6 {
		t.Errorf("%d of %d pages show the markup as text", shown, len(pages))
	}
	b.quiet()
}
