package console

import (
	"net/http"
	"strings"
	"testing"
)

// What no one has asked lately is not said to be well, and attempts of calls that others
// began are no multiple of none.
func TestNowSaysNoMoreThanIsKnown(t *testing.T) {
	f := newFake(t)
	f.answers["GET /admin/status"] = `{"total":1,"dependencies":[{"dependency":"payments","hour":{"calls":[0],"retries":[7],"failed":[0],"saved":[0]}}]}`
	w := f.get("/")
	holds(t, w, http.StatusOK, ">quiet<", "0 + 7 </td>")
	if strings.Contains(w.Body.String(), ">well<") || strings.Contains(w.Body.String(), "&times;") {
		t.Errorf("got %s", w.Body)
	}
	f.answers["GET /admin/status"] = `{"total":1,"dependencies":[{"dependency":"payments","latency":{"p50":"1ms","p99":"2ms"},"hour":{"calls":[2],"retries":[1],"failed":[0],"saved":[1]}}]}`
	holds(t, f.get("/"), http.StatusOK, ">well<", "&times;1.50")
	f.answers["GET /admin/status"] = `{}`
	holds(t, f.get("/"), http.StatusOK, "No calls yet")
	holds(t, f.get("/?q=paymnets"), http.StatusOK, "No name matches")
}
