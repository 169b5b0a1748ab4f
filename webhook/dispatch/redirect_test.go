package dispatch

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A redirect to the inside is not followed at all.
func TestRedirectsAreNotFollowed(t *testing.T) {
	hit := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer inside.Close()
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer outside.Close()
	open := &http.Client{Transport: webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}.Transport(time.Second), CheckRedirect: noRedirect}
	resp, err := open.Get(outside.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || hit {
		t.Errorf("the redirect was followed: %d", resp.StatusCode)
	}
}
