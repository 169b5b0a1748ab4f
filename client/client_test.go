package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/forbear-go/forbear/client"
)

// Pages are gone through to the last, and one that fails ends the list with what the
// service said.
func TestMessages(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Forbear-Actor"))
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Query().Get("after") {
		case "":
			_, _ = io.WriteString(w, `{"messages":[],"next":"7"}`)
		case "7":
			_, _ = io.WriteString(w, `{"messages":[{"id":"m1","endpoint":"a","state":"dead","created_at":"2026-01-31T08:00:00Z","attempts":5}],"next":"5"}`)
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"type":"urn:forbear:problem:unavailable","title":"Service Unavailable","status":503,"detail":"try again"}`)
		}
	}))
	defer s.Close()
	c, err := client.NewClientWithResponses(s.URL, client.WithToken("t"), client.WithActor(""))
	if err != nil {
		t.Fatal(err)
	}
	endpoints := []string{"a", "b"}
	var ids []string
	for m, failed := range c.Messages(t.Context(), client.ListMessagesParams{Endpoint: &endpoints}) {
		if err = failed; err == nil {
			ids = append(ids, m.ID)
		}
	}
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != 503 || p.Error() != "Service Unavailable: try again" {
		t.Errorf("got %v", err)
	}
	if len(ids) != 1 || ids[0] != "m1" || len(asked) != 3 || asked[1] != "endpoint=a&endpoint=b&after=7 Bearer t " {
		t.Errorf("got %v by %q", ids, asked)
	}
}
