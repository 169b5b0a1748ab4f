package idempotency_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/idempotency"
)

// What an operator gives in a lost response's place is as bounded as a handler's.
func TestGivenResponsesAreChecked(t *testing.T) {
	good := idempotency.Response{
		Status: 201, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/payments/17"}}, Body: []byte(`{"id":17}`),
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	const secret = "planted-value"
	for name, c := range map[string]struct {
		a    idempotency.Response
		want string
	}{
		"not final":      {idempotency.Response{Status: 503}, "status 503 is not final: want 200 to 499"},
		"no status":      {idempotency.Response{}, "status 0 is not final: want 200 to 499"},
		"informational":  {idempotency.Response{Status: 101}, "status 101 is not final: want 200 to 499"},
		"body of a 204":  {idempotency.Response{Status: 204, Body: []byte("x")}, "status 204 has no body"},
		"large body":     {idempotency.Response{Status: 200, Body: make([]byte, 1<<20+1)}, "body is larger than 1 MiB"},
		"large headers":  {idempotency.Response{Status: 200, Header: http.Header{"X-A": {strings.Repeat("a", 16<<10)}}}, "headers are larger than 16 KiB"},
		"a credential":   {idempotency.Response{Status: 200, Header: http.Header{"set-cookie": {secret}}}, "header set-cookie is never stored"},
		"a length":       {idempotency.Response{Status: 200, Header: http.Header{"Content-Length": {"7"}}}, "header Content-Length is never stored"},
		"no name":        {idempotency.Response{Status: 200, Header: http.Header{"": {secret}}}, `header "" cannot be sent`},
		"a bad name":     {idempotency.Response{Status: 200, Header: http.Header{"X A": {secret}}}, `header "X A" cannot be sent`},
		"a second line":  {idempotency.Response{Status: 200, Header: http.Header{"X-A": {secret + "\r\nX-B: 1"}}}, `header "X-A" cannot be sent`},
		"a continuation": {idempotency.Response{Status: 200, Header: http.Header{"X-A": {secret + "\r\n 1"}}}, `header "X-A" cannot be sent`},
		"a bell":         {idempotency.Response{Status: 200, Header: http.Header{"X-A": {secret + "\a"}}}, `header "X-A" cannot be sent`},
		"two faults":     {idempotency.Response{Status: 503, Body: make([]byte, 1<<20+1)}, "status 503 is not final: want 200 to 499\nbody is larger than 1 MiB"},
	} {
		if err := c.a.Check(); err == nil || err.Error() != c.want || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
