package dispatch

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// received is the latest request of a receiver.
type received struct {
	header http.Header
	body   []byte
}

func (v *received) RoundTrip(req *http.Request) (*http.Response, error) {
	v.header = req.Header
	v.body, _ = io.ReadAll(req.Body)
	return status(200)(req)
}

// signers returns which of the secrets have signed the request, in the order of the
// signatures, each checked by what it signs.
func (v *received) signers(secrets map[string]string) (names []string) {
	for signature := range strings.FieldsSeq(v.header.Get("Webhook-Signature")) {
		name := "unknown"
		for n, secret := range secrets {
			if webhook.Verify(secret, v.header.Get("Webhook-Id"), v.header.Get("Webhook-Timestamp"), signature, v.body, time.Now()) == nil {
				name = n
			}
		}
		names = append(names, name)
	}
	return names
}

// A rotated secret signs beside the new one, which comes first, until the overlap is
// over, and is removed from the store then. Of two rotations each has its own time.
func TestRotatedSecretSignsUntilTheOverlapIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &received{}
		secrets := map[string]string{"first": webhook.NewSecret()}
		r := newRig(t, v, webhook.Endpoint{Secrets: []string{secrets["first"]}})
		signed := func(when string, want ...string) {
			t.Helper()
			r.l = r.d.lane("a")
			r.process(r.job())
			if got := v.signers(secrets); !slices.Equal(got, want) {
				t.Errorf("%s: signed with %q, want %q", when, got, want)
			}
		}
		rotate := func(name string, overlap time.Duration) {
			t.Helper()
			e, err := r.d.RotateSecrets(t.Context(), "a", overlap)
			if err != nil {
				t.Fatal(err)
			}
			secrets[name] = e.MadeSecret
		}
		signed("before", "first")
		rotate("second", 24*time.Hour)
		signed("at once", "second", "first")
		time.Sleep(23 * time.Hour)
		rotate("third", 2*time.Hour)
		signed("rotated again", "third", "second", "first")
		if _, err := r.d.UpdateEndpoint(t.Context(), "a", func(e *webhook.Endpoint) error { e.Rate = 1000; return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := r.d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/new"}); err != nil {
			t.Fatal(err)
		}
		signed("changed in between", "third", "second", "first")
		time.Sleep(time.Hour - time.Second)
		signed("a second before the first ends", "third", "second", "first")
		time.Sleep(time.Second)
		signed("when the first has ended", "third", "second")
		r.d.forgetSecrets(t.Context())
		if e, err := r.store.Endpoint(t.Context(), "a"); err != nil || len(e.OldSecrets) != 1 || e.OldSecrets[0].Secret != secrets["second"] {
			t.Errorf("stored are %d old secrets, %v", len(e.OldSecrets), err)
		}
		time.Sleep(time.Hour)
		signed("when all have ended", "third")
		r.d.forgetSecrets(t.Context())
		before, err := r.store.Endpoint(t.Context(), "a")
		if err != nil || len(before.OldSecrets) != 0 || !slices.Equal(before.Secrets, []string{secrets["third"]}) {
			t.Errorf("stored are %d old secrets, %v", len(before.OldSecrets), err)
		}
		r.d.forgetSecrets(t.Context())
		if e, _ := r.store.Endpoint(t.Context(), "a"); e.Version != before.Version {
			t.Error("the endpoint is written though nothing has ended")
		}
		rotate("fourth", 24*time.Hour)
		rotate("fifth", 0)
		signed("without an overlap", "fifth")
		if _, err := r.d.UpdateEndpoint(t.Context(), "a", func(e *webhook.Endpoint) error { e.Secrets = []string{secrets["first"]}; return nil }); err != nil {
			t.Fatal(err)
		}
		signed("other secrets were put", "first")
	})
}

// An ed25519 key is followed by one; what is not the endpoint's own to rotate is refused,
// and so are more secrets than may sign.
func TestRotationKeepsToWhatItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv("TEST_S", webhook.NewSecret())
		v := &received{}
		private, public := webhook.NewKeyPair()
		r := newRig(t, v, webhook.Endpoint{Secrets: []string{private}})
		e, err := r.d.RotateSecrets(t.Context(), "a", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r.l = r.d.lane("a")
		r.process(r.job())
		keys := map[string]string{"old": public, "new": webhook.PublicKey(e.MadeSecret)}
		if got := v.signers(keys); !slices.Equal(got, []string{"new", "old"}) {
			t.Errorf("signed with %q", got)
		}
		for range maxSecrets - 2 {
			if _, err := r.d.RotateSecrets(t.Context(), "a", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.d.RotateSecrets(t.Context(), "a", time.Hour); !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("one more than may sign: %v", err)
		}
		if _, err := r.d.PutApplication(t.Context(), webhook.Application{ID: "acme", Secrets: []string{webhook.NewSecret()}}); err != nil {
			t.Fatal(err)
		}
		for id, e := range map[string]webhook.Endpoint{
			"reference": {Secrets: []string{"env:S"}}, "both": {Secrets: []string{webhook.NewSecret(), "env:S"}}, "unsigned": {Unsigned: true}, "shared": {Application: "acme"},
		} {
			e.ID, e.URL = id, "https://example.com/"
			if _, err := r.d.PutEndpoint(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if _, err := r.d.RotateSecrets(t.Context(), id, time.Hour); !errors.Is(err, webhook.ErrInvalid) {
				t.Errorf("%s: %v", id, err)
			}
		}
		for _, overlap := range []time.Duration{-1, MaxOverlap + 1} {
			if _, err := r.d.RotateSecrets(t.Context(), "a", overlap); !errors.Is(err, webhook.ErrInvalid) {
				t.Errorf("an overlap of %v: %v", overlap, err)
			}
		}
		if _, err := r.d.PutApplication(t.Context(), webhook.Application{ID: "acme"}); !errors.Is(err, webhook.ErrInvalid) || !strings.Contains(err.Error(), `endpoint "shared" signs with them`) {
			t.Errorf("an application's secrets, removed from under its endpoint: %v", err)
		}
	})
}

// No endpoint is unsigned that does not say so: a new one gets a secret, and what a
// configuration leaves out stays.
func TestEndpointsAreSignedUnlessTheySayOtherwise(t *testing.T) {
	v := &received{}
	r := newRig(t, v, webhook.Endpoint{})
	secrets := map[string]string{}
	put := func(name string, e webhook.Endpoint) webhook.Endpoint {
		t.Helper()
		e.ID, e.URL = "b", "https://example.com/"
		e, err := r.d.PutEndpoint(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" {
			secrets[name] = e.MadeSecret
		}
		return e
	}
	signed := func(want ...string) {
		t.Helper()
		if _, err := r.d.TestAndEnable(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		if got := v.signers(secrets); !slices.Equal(got, want) {
			t.Errorf("signed with %q, want %q", got, want)
		}
	}
	if put("made", webhook.Endpoint{}); secrets["made"] == "" {
		t.Error("a new endpoint got no secret")
	}
	signed("made")
	if e := put("", webhook.Endpoint{Rate: 5}); e.MadeSecret != "" {
		t.Error("another secret was made for an endpoint that has one")
	}
	signed("made")
	put("", webhook.Endpoint{Unsigned: true})
	signed()
	if e, err := r.d.UpdateEndpoint(t.Context(), "b", func(e *webhook.Endpoint) error { e.Unsigned = false; return nil }); err != nil || e.MadeSecret == "" {
		t.Errorf("unsigned no more, it got no secret: %v", err)
	} else {
		secrets["again"] = e.MadeSecret
	}
	signed("again")
	if e, err := r.store.Endpoint(t.Context(), "b"); err != nil || e.MadeSecret != "" {
		t.Errorf("what was made is stored twice, %v", err)
	}
	if _, err := r.d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "c", URL: "https://example.com/", Unsigned: true, Secrets: []string{webhook.NewSecret()}}); !errors.Is(err, webhook.ErrInvalid) {
		t.Errorf("unsigned with secrets: %v", err)
	}
}
