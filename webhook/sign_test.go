package webhook

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestVerify(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	old, fresh := NewSecret(), NewSecret()
	private, public := NewKeyPair()
	var s Signer
	for _, secret := range []string{old, fresh, private} {
		if err := s.Add(secret); err != nil {
			t.Fatal(err)
		}
	}
	body := []byte(`{"a":1}`)
	sig := s.Sign("msg_1", now, body)
	if n := len(strings.Fields(sig)); n != 3 {
		t.Fatalf("%d signatures, want one for each secret: %s", n, sig)
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	_, otherPublic := NewKeyPair()
	for _, c := range []struct {
		name, secret, id, stamp string
		body                    string
		at                      time.Time
		ok                      bool
	}{
		{"old secret", old, "msg_1", stamp, `{"a":1}`, now, true},
		{"new secret", fresh, "msg_1", stamp, `{"a":1}`, now, true},
		{"public key", public, "msg_1", stamp, `{"a":1}`, now, true},
		{"another secret", NewSecret(), "msg_1", stamp, `{"a":1}`, now, false},
		{"another key", otherPublic, "msg_1", stamp, `{"a":1}`, now, false},
		{"another id", old, "msg_2", stamp, `{"a":1}`, now, false},
		{"another body", old, "msg_1", stamp, `{"a":2}`, now, false},
		{"another time", old, "msg_1", strconv.FormatInt(now.Unix()+1, 10), `{"a":1}`, now, false},
		{"too old", old, "msg_1", stamp, `{"a":1}`, now.Add(6 * time.Minute), false},
		{"from the future", old, "msg_1", stamp, `{"a":1}`, now.Add(-6 * time.Minute), false},
		{"no number", old, "msg_1", "x", `{"a":1}`, now, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Verify(c.secret, c.id, c.stamp, sig, []byte(c.body), c.at)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrSignature) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSecretsAreChecked(t *testing.T) {
	for _, s := range []string{"", "whsec_", "whsec_!!", "plain-text", "hunter2", "whsec_hunter2", "whsk_hunter2", "whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)), "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)), "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)), "whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 31))} {
		if err := ParseSecret(s); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "want") || len(s) > 8 && strings.Contains(err.Error(), s[6:]) {
			t.Errorf("%.12q: got %v", s, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", []byte("x"))
	f.Add("whpk_", "-1", "v1a, v1,", []byte{})
	f.Fuzz(func(t *testing.T, secret, stamp, sig string, body []byte) {
		if Verify(secret, "msg_1", stamp, sig, body, time.Unix(1614265330, 0)) == nil {
			var s Signer
			n, _ := strconv.ParseInt(stamp, 10, 64)
			if s.Add(secret) != nil {
				return
			}
			if want := s.Sign("msg_1", time.Unix(n, 0), body); !strings.Contains(sig, want[3:10]) {
				t.Errorf("accepted %q", sig)
			}
		}
	})
}
