package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const heldKey = `{"scope":"pay%2Fments/host/v1 ada","key":"DIGEST","state":"held","operation":"POST /<b>charges</b>","attempt":2,"fence":7,"created":"2026-01-02T03:04:05Z","note":"the owner's lease expired"}`

// recordAddress is the address of heldKey.
const recordAddress = "/keys/record?scope=pay%252Fments%2Fhost%2Fv1+ada&key=DIGEST"

// shows is a fake with that record.
func showsKey(t *testing.T) *fake {
	f := newFake(t)
	f.answers["GET /v1/keys"] = `{"keys":[` + heldKey + `],"next":"more+"}`
	f.answers["POST /v1/keys/settle"] = heldKey
	f.answers["GET /admin/dependencies/pay/ments"] = `{}`
	return f
}

func TestKeysAreHeldOnesByDefault(t *testing.T) {
	f := showsKey(t)
	holds(t, f.get("/keys?scope=a+b"), http.StatusOK, "POST /&lt;b&gt;charges", `href="/keys/record?scope=pay%252Fments%2Fhost%2Fv1&#43;ada&amp;key=DIGEST"`, "lease expired", `href="/keys?after=more%2B&amp;scope=a&#43;b"`)
	f.get("/keys?state=all&after=x")
	if want := []string{"GET /v1/keys?limit=50&scope=a+b&state=held", "GET /v1/keys?after=x&limit=50"}; !slices.Equal(f.calls, want) {
		t.Errorf("calls %q, want %q", f.calls, want)
	}
}

func TestKeyShowsEvidenceAndNoWayToReaders(t *testing.T) {
	f := showsKey(t)
	w := f.get(recordAddress)
	holds(t, w, http.StatusOK, "POST /&lt;b&gt;charges", "lease expired", `<a href="/now/pay%2Fments">pay/ments</a>`, "You may only read")
	if strings.Contains(w.Body.String(), "/keys/settle") {
		t.Error("a reader sees the form")
	}
	holds(t, f.do(http.MethodPost, "/keys/settle", url.Values{"outcome": {"undone"}}), http.StatusForbidden, "only read")
	f.answers["GET /v1/keys"] = `{"keys":[]}`
	holds(t, f.get(recordAddress), http.StatusNotFound, "no such record")
}

// form is what the page of heldKey sends.
func values(pairs ...string) url.Values {
	v := url.Values{"scope": {"pay%2Fments/host/v1 ada"}, "key": {"DIGEST"}, "fence": {"7"}}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

func TestSettleSendsTheRunThatWasShown(t *testing.T) {
	for _, way := range []struct {
		form url.Values
		body string
	}{
		{values("outcome", "undone", "why", "looked"), `"undone":true,"why":"looked"`},
		{
			values("outcome", "done", "why", "looked", "status", "201", "headers", "Content-Type: application/json\r\n\r\n X-A:  b:c \r\n", "body", "{\"n\":12345678901234567890}\r\n"),
			`"done":{"body_base64":"eyJuIjoxMjM0NTY3ODkwMTIzNDU2Nzg5MH0K","headers":[{"name":"Content-Type","value":"application/json"},{"name":"X-A","value":"b:c"}],"status":201},"fence":7`,
		},
	} {
		f := showsKey(t).signedIn(t, adminToken)
		w := f.do(http.MethodPost, "/keys/settle", way.form)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != strings.Replace(recordAddress, "scope=pay%252Fments%2Fhost%2Fv1+ada&key=DIGEST", "key=DIGEST&scope=pay%252Fments%2Fhost%2Fv1+ada", 1) {
			t.Errorf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
		}
		if len(f.calls) != 1 || !strings.Contains(f.calls[0], way.body) || !strings.Contains(f.calls[0], `"fence":7`) || !strings.Contains(f.calls[0], `"scope":"pay%2Fments/host/v1 ada"`) {
			t.Errorf("calls %q, want one with %s", f.calls, way.body)
		}
	}
}

func TestSettleKeepsWhatWasTyped(t *testing.T) {
	f := showsKey(t).signedIn(t, adminToken)
	f.answers["POST /v1/keys/settle"] = `409 {"detail":"its outcome is known"}`
	typed := values("outcome", "done", "why", `"quoted"`, "status", "201", "headers", "A: b", "body", "\n<i>")
	holds(t, f.do(http.MethodPost, "/keys/settle", typed), http.StatusConflict, "It has run again", `value="&#34;quoted&#34;"`, `value="201"`, ">\nA: b</textarea>", ">\n\n&lt;i&gt;</textarea>")
	if w := f.do(http.MethodPost, "/keys/settle", typed, "HX-Request", "true"); w.Code != http.StatusConflict || w.Body.String() != "its outcome is known\n" {
		t.Errorf("to a script: %d %s", w.Code, w.Body)
	}
	before := len(f.calls)
	for _, wrong := range []url.Values{values("why", "x"), values("outcome", "done", "status", "ok"), values("outcome", "done", "status", "200", "headers", "no colon"), values("outcome", "undone", "fence", "")} {
		holds(t, f.do(http.MethodPost, "/keys/settle", wrong), http.StatusBadRequest, `role="alert"`)
	}
	for _, call := range f.calls[before:] {
		if strings.HasPrefix(call, "POST") {
			t.Errorf("a form with a mistake was sent: %s", call)
		}
	}
}

func TestFindKeyPutsNoKeyIntoAnAddress(t *testing.T) {
	f := showsKey(t).signedIn(t, adminToken)
	f.answers["POST /v1/keys/find"] = `{"keys":[` + heldKey + `]}`
	w := f.do(http.MethodPost, "/keys/find", url.Values{"key": {"order-1"}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/keys?key=DIGEST&state=all" {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	if want := []string{`POST /v1/keys/find {"key":"order-1","source":""}`}; !slices.Equal(f.calls, want) {
		t.Errorf("calls %q, want %q", f.calls, want)
	}
	f.answers["POST /v1/keys/find"] = `{"keys":[]}`
	holds(t, f.do(http.MethodPost, "/keys/find", url.Values{"key": {"order-2"}}), http.StatusNotFound, "No record has this key")
}

func TestKeysWithoutDeliveriesNameTheCommand(t *testing.T) {
	f := newFake(t, func(c *Config) { c.API = nil })
	holds(t, f.get("/keys"), http.StatusOK, "<code>forbear keys list")
	holds(t, f.get(recordAddress), http.StatusNotFound, "Deliveries are off")
}
