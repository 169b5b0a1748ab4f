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

// owner is an endpoint or an application, whose secrets an endpoint signs with.
type owner struct {
	endpoint string

	rotate func(overlap time.Duration) (made string, err error)
	put    func(secrets ...string) error // replaces it
	patch  func(change func(secrets *[]string)) error
	stored func() (secrets []string, old []webhook.OldSecret, version int64)
}

// owners returns a rig for each kind of owner of one secret.
func owners(t *testing.T, v *received, secret string) map[string]func() (*rig, owner) {
	return map[string]func() (*rig, owner){
		"endpoint": func() (*rig, owner) {
			r := newRig(t, v, webhook.Endpoint{Secrets: []string{secret}})
			return r, owner{
				"a",
				func(overlap time.Duration) (string, error) {
					e, err := r.d.RotateSecrets(t.Context(), "a", overlap)
					return e.MadeSecret, err
				},
				func(secrets ...string) error {
					_, err := r.d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/new", Secrets: secrets})
					return err
				},
				func(change func(*[]string)) error {
					_, err := r.d.UpdateEndpoint(t.Context(), "a", func(e *webhook.Endpoint) error { change(&e.Secrets); e.Rate = 1000; return nil })
					return err
				},
				func() ([]string, []webhook.OldSecret, int64) {
					e, err := r.store.Endpoint(t.Context(), "a")
					if err != nil {
						t.Error(err)
					}
					return e.Secrets, e.OldSecrets, e.Version
				},
			}
		},
		"application": func() (*rig, owner) {
			r := newRig(t, v, webhook.Endpoint{})
			_, err := r.d.PutApplication(t.Context(), webhook.Application{ID: "acme", Secrets: []string{secret}})
			_, err2 := r.d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "shared", URL: "https://example.com/", Application: "acme"})
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			return r, owner{
				"shared",
				func(overlap time.Duration) (string, error) {
					a, err := r.d.RotateApplicationSecrets(t.Context(), "acme", overlap)
					return a.MadeSecret, err
				},
				func(secrets ...string) error {
					_, err := r.d.PutApplication(t.Context(), webhook.Application{ID: "acme", Name: "new", Secrets: secrets})
					return err
				},
				func(change func(*[]string)) error {
					_, err := r.d.UpdateApplication(t.Context(), "acme", func(a *webhook.Application) error { change(&a.Secrets); a.Rate = 1000; return nil })
					return err
				},
				func() ([]string, []webhook.OldSecret, int64) {
					a, err := r.store.Application(t.Context(), "acme")
					if err != nil {
						t.Error(err)
					}
					return a.Secrets, a.OldSecrets, a.Version
				},
			}
		},
	}
}

// A rotated secret, of an endpoint or of an application, signs beside the new one, which
// comes first, until the overlap is over, and is removed from the store then. Of two
// rotations each has its own time.
func TestRotatedSecretSignsUntilTheOverlapIsOver(t *testing.T) {
	for kind := range owners(t, nil, "") {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &received{}
				secrets := map[string]string{"first": webhook.NewSecret()}
				r, o := owners(t, v, secrets["first"])[kind]()
				rotatedSecretSigns(t, r, o, v, secrets)
			})
		})
	}
}

func rotatedSecretSigns(t *testing.T, r *rig, o owner, v *received, secrets map[string]string) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	signed := func(when string, want ...string) {
		t.Helper()
		r.to = r.d.receiver(o.endpoint)
		r.process(r.job())
		if got := v.signers(secrets); !slices.Equal(got, want) {
			t.Errorf("%s: signed with %q, want %q", when, got, want)
		}
	}
	rotate := func(name string, overlap time.Duration) {
		t.Helper()
		made, err := o.rotate(overlap)
		check(err)
		secrets[name] = made
	}
	signed("before", "first")
	rotate("second", 24*time.Hour)
	signed("at once", "second", "first")
	time.Sleep(23 * time.Hour)
	rotate("third", 2*time.Hour)
	signed("rotated again", "third", "second", "first")
	check(o.patch(func(*[]string) {}))
	check(o.put())
	signed("changed in between", "third", "second", "first")
	time.Sleep(time.Hour - time.Second)
	signed("a second before the first ends", "third", "second", "first")
	time.Sleep(time.Second)
	signed("when the first has ended", "third", "second")
	r.d.forgetSecrets(t.Context())
	if _, old, _ := o.stored(); len(old) != 1 || old[0].Secret != secrets["second"] {
		t.Errorf("stored are %d old secrets", len(old))
	}
	time.Sleep(time.Hour)
	signed("when all have ended", "third")
	r.d.forgetSecrets(t.Context())
	stored, old, before := o.stored()
	if len(old) != 0 || !slices.Equal(stored, []string{secrets["third"]}) {
		t.Errorf("stored are %d secrets and %d old ones", len(stored), len(old))
	}
	r.d.forgetSecrets(t.Context())
	if _, _, version := o.stored(); version != before {
		t.Error("it is written though nothing has ended")
	}
	rotate("fourth", 24*time.Hour)
	rotate("fifth", 0)
	signed("without an overlap", "fifth")
	rotate("sixth", time.Hour)
	check(o.patch(func(s *[]string) { *s = []string{secrets["first"]} }))
	signed("other secrets were patched in", "first")
	rotate("seventh", time.Hour)
	check(o.put(secrets["first"]))
	signed("other secrets were put", "first")
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
		r.to = r.d.receiver("a")
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
		if _, err := r.d.RotateApplicationSecrets(t.Context(), "acme", MaxOverlap+1); !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("an overlap that is too long for an application: %v", err)
		}
		for id, secrets := range map[string][]string{"referring": {"env:S"}, "bare": nil} {
			if _, err := r.d.PutApplication(t.Context(), webhook.Application{ID: id, Secrets: secrets}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.d.RotateApplicationSecrets(t.Context(), id, time.Hour); !errors.Is(err, webhook.ErrInvalid) {
				t.Errorf("application %s: %v", id, err)
			}
		}
		if _, err := r.d.UpdateApplication(t.Context(), "acme", func(a *webhook.Application) error { a.Secrets = nil; return nil }); !errors.Is(err, webhook.ErrInvalid) || !strings.Contains(err.Error(), `endpoint "shared" signs with them`) {
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
		if _, err := r.d.TestAndEnable(t.Context(), "b", webhook.ByOperator); err != nil {
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
