package oauth_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear/credential/oauth"
	"github.com/forbear-go/forbear/internal/hostile"
)

// A token request ends in its time, whatever the server does.
func TestHostileTokenServers(t *testing.T) {
	hostile.Each(t, func(t *testing.T, servers []hostile.Server, transport *http.Transport) {
		client := &http.Client{Transport: transport}
		hostile.Hold(t, servers, func(t *testing.T, s hostile.Server, url string) int {
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
