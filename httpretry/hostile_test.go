package httpretry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/hostiletest"
)

// A call ends with its context, whatever the server does: also the reading of a body that
// is the connection of an upgrade which the request has not asked for.
func TestHostileServers(t *testing.T) {
	hostiletest.Each(t, func(t *testing.T, servers []hostiletest.Server, transport *http.Transport) {
		hostiletest.Hold(t, servers, func(t *testing.T, s hostiletest.Server, url string) int {
			// Of a POST without a key there is none, but for one that was disowned.
			r := quiet(t, forbear.Policy{MaxRetries: 1})
			client := &http.Client{Transport: httpretry.NewTransport(transport, r), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			resp, err := client.Do(newRequest(t, http.MethodPost, url, "{}", "").WithContext(ctx))
			disowned := s.HTTP2 && (s.Name == "goes away without it" || s.Name == "resets the stream with 7")
			if e, ok := errors.AsType[*forbear.Error](err); ok && disowned {
				return e.Attempts
			} else if err != nil {
				return 1
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != s.Status {
				t.Errorf("%s: status %d", s.Name, resp.StatusCode)
			}
			return 1
		})
	})
}
