package oauth_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/credential/oauth"
)

func TestFetch(t *testing.T) {
	for _, tc := range []struct {
		name, answer  string
		status        int
		want, wantErr string
		life          time.Duration
	}{
		{"good", `{"access_token":"abc","token_type":"bearer","expires_in":60}`, 200, "Bearer abc", "", time.Minute},
		{"without a life", `{"access_token":"abc"}`, 200, "Bearer abc", "", 5 * time.Minute},
		{"absurd life", `{"access_token":"abc","expires_in":9223372036854775807}`, 200, "Bearer abc", "", 365 * 24 * time.Hour},
		{"negative life", `{"access_token":"abc","expires_in":-1}`, 200, "Bearer abc", "", 5 * time.Minute},
		{"another type", `{"access_token":"abc","token_type":"mac"}`, 200, "", "not Bearer", 0},
		{"no token", `{}`, 200, "", "cannot be read", 0},
		{"a header inside", `{"access_token":"abc\r\nX-Evil: 1"}`, 200, "", "cannot be read", 0},
		{"not JSON", `<html>`, 200, "", "cannot be read", 0},
		{"refused", `{"error":"invalid_client"}`, 401, "", "answered 401: the client was refused", 0},
		{"broken", ``, 500, "", "answered 500", 0},
		{"moved", ``, 302, "", "answered 302", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id, secret, _ := r.BasicAuth()
				form, _ := io.ReadAll(r.Body)
				if id != "check%3Aout" || secret != "s%26cret" || string(form) != "grant_type=client_credentials&scope=pay+refund" {
					t.Errorf("asked as %q, %q with %q", id, secret, form)
				}
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			}))
			defer s.Close()
			c := oauth.Client{URL: s.URL + "/token?tenant=hidden", ID: "check:out", Scopes: []string{"pay", "refund"}, HTTP: &http.Client{
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			}}
			got, expires, err := c.Fetch(t.Context(), "s&cret")
			if got != tc.want || (err == nil) != (tc.wantErr == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.wantErr) || errors.Is(err, oauth.ErrRefused) != (tc.status == 401) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if life := time.Until(expires); life > tc.life || life < tc.life-10*time.Second {
				t.Errorf("good for %v, want %v", life, tc.life)
			}
		})
	}
}

func TestErrorsHoldNoAddress(t *testing.T) {
	c := oauth.Client{URL: "http://127.0.0.1:1/token?tenant=hidden", ID: "id", HTTP: http.DefaultClient}
	if _, _, err := c.Fetch(t.Context(), "secret"); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}
