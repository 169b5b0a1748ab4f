package oauth_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear/credential/oauth"
	"github.com/forbear-go/forbear/internal/testkit/hostiletest"
)

// A token request ends in its time, whatever the server does.
func TestHostileTokenServers(t *testing.T) {
	hostiletest.Each(t, func(t *testing.T, servers []hostiletest.Server, transport *http.Transport) {
		client := &http.Client{Transport: transport}
		hostiletest.Hold(t, servers, func(t *testing.T, s hostiletest.Server, url string) int {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			c := &oauth.ClientCredentials{URL: url, ID: "id", Secret: oauth.Value("secret"), HTTP: client}
			if token, err := c.Token(ctx); err == nil {
				t.Errorf("%s: %v", s.Name, token)
			}
			return 1
		})
	})
}
