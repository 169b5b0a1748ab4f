package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/credential/oauth"
)

// serve returns the URL of a token endpoint that gives one response, and checks
// that it was asked with the client's id and secret by HTTP basic
// authentication.
func serve(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		form, _ := io.ReadAll(r.Body)
		if id != "check%3Aout" || secret != "s%26cret" || string(form) != "grant_type=client_credentials&scope=pay+refund" {
			t.Errorf("asked as %q, %q with %q", id, secret, form)
		}
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/token?tenant=hidden"
}

func client(url string) oauth.ClientCredentials {
	return oauth.ClientCredentials{
		URL: url, ID: "check:out", Secret: oauth.Value("s&cret"), Scopes: []string{"pay", "refund"},
		HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

func TestFetch(t *testing.T) {
	for _, tc := range []struct {
		name, body    string
		status        int
		want, wantErr string
		life          time.Duration
	}{
		{"good", `{"access_token":"abc","token_type":"bearer","expires_in":60}`, 200, "Bearer abc", "", time.Minute},
		{"without a life", `{"access_token":"abc"}`, 200, "Bearer abc", "", 5 * time.Minute},
		{"absurd life", `{"access_token":"abc","expires_in":9223372036854775807}`, 200, "Bearer abc", "", 30 * 24 * time.Hour},
		{"negative life", `{"access_token":"abc","expires_in":-1}`, 200, "Bearer abc", "", 5 * time.Minute},
		{"another type", `{"access_token":"abc","token_type":"mac"}`, 200, "", "not Bearer", 0},
		{"no token", `{}`, 200, "", "cannot be read", 0},
		{"a header inside", `{"access_token":"abc\r\nX-Evil: 1"}`, 200, "", "cannot be read", 0},
		{"not JSON", `<html>`, 200, "", "cannot be read", 0},
		{"more than one document", `{"access_token":"abc"}{}`, 200, "", "cannot be read", 0},
		{"endless", `{"access_token":"` + strings.Repeat("a", 1<<20) + `"}`, 200, "", "cannot be read", 0},
		{"broken", ``, 500, "", "response 500", 0},
		{"moved", ``, 302, "", "response 302", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := client(serve(t, tc.status, tc.body))
			got, err := c.Token(t.Context())
			if got.Value != tc.want || (err == nil) != (tc.wantErr == "") {
				t.Fatalf("got %q, %v", got.Value, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.wantErr) || errors.Is(err, credential.ErrRevoked) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if life := time.Until(got.Expires); life > tc.life || life < tc.life-10*time.Second {
				t.Errorf("good for %v, want %v", life, tc.life)
			}
		})
	}
}

// A refusal is final by its code, or by its status where that is configured.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		body            string
		status          int
		final, byStatus bool
	}{
		{`{"error":"invalid_client"}`, 401, true, true},
		{`{"error":"invalid_grant"}`, 400, true, true},
		{`{"error":"unauthorized_client"}`, 400, true, true},
		{`{"error":"invalid_scope"}`, 400, false, true},
		{`planted`, 401, false, true},
		{`{"error":"planted"}`, 403, false, false},
		{`{"error":"temporarily_unavailable"}`, 503, false, false},
	} {
		c := client(serve(t, tc.status, tc.body))
		for _, c.StatusIsFinal = range []bool{false, true} {
			want := tc.final
			if c.StatusIsFinal {
				want = tc.byStatus
			}
			_, err := c.Token(t.Context())
			if err == nil || errors.Is(err, credential.ErrRevoked) != want || !strings.Contains(err.Error(), fmt.Sprint("response ", tc.status)) {
				t.Errorf("%d %s: got %v, want final %v", tc.status, tc.body, err, want)
			}
			if strings.Contains(err.Error(), "planted") || strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error repeats the response or the query: %v", err)
			}
		}
	}
}

func TestForm(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if got := string(body); got != "client_id=id&client_secret=s%26cret&grant_type=client_credentials" || r.Header.Get("Authorization") != "" {
			t.Errorf("asked with %q and %q", got, r.Header.Get("Authorization"))
		}
		_, _ = io.WriteString(w, `{"access_token":"abc"}`)
	}))
	defer s.Close()
	c := oauth.ClientCredentials{URL: s.URL, ID: "id", Secret: oauth.Value("s&cret"), Form: true}
	if got, err := c.Token(t.Context()); err != nil || got.Value != "Bearer abc" {
		t.Errorf("got %q, %v", got.Value, err)
	}
}

// A token is replaced early, but lives at least half of its life.
func TestEarly(t *testing.T) {
	for _, tc := range []struct{ seconds, early, want time.Duration }{
		{3600, 5 * time.Minute, 55 * time.Minute},
		{60, 5 * time.Minute, 30 * time.Second},
		{60, 0, time.Minute},
	} {
		c := client(serve(t, 200, fmt.Sprintf(`{"access_token":"abc","expires_in":%d}`, tc.seconds)))
		c.Early = tc.early
		got, err := c.Token(t.Context())
		if life := time.Until(got.Expires); err != nil || life > tc.want || life < tc.want-10*time.Second {
			t.Errorf("%d s, early %v: good for %v, want %v (%v)", tc.seconds, tc.early, life, tc.want, err)
		}
	}
}

// A secret that cannot be had is the error, and nothing is sent.
func TestSecretIsLookedUp(t *testing.T) {
	gone := errors.New("no such secret")
	c := oauth.ClientCredentials{URL: "http://127.0.0.1:1/", ID: "id", Secret: func(context.Context) (string, error) { return "", gone }}
	if _, err := c.Token(t.Context()); err != gone {
		t.Errorf("got %v, want the source's own error", err)
	}
}

func TestErrorsHoldNoSecrets(t *testing.T) {
	c := oauth.ClientCredentials{ID: "id", Secret: oauth.Value("planted")}
	for _, c.URL = range []string{"http://127.0.0.1:1/token?tenant=planted", "http://user:planted@127.0.0.1:1/", "http://planted%zz/"} {
		if _, err := c.Token(t.Context()); err == nil || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: got %v", c.URL, err)
		}
	}
	if s := fmt.Sprintf("%+v", c); strings.Contains(strings.ReplaceAll(s, c.URL, ""), "planted") {
		t.Errorf("printing shows the secret: %s", s)
	}
}
