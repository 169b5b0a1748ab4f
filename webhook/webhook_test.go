package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test vector of the Standard Webhooks specification.
func TestSignatureVector(t *testing.T) {
	var s Signer
	if err := s.Add("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"); err != nil {
		t.Fatal(err)
	}
	got := s.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

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
	for _, s := range []string{"", "whsec_", "whsec_!!", "plain-text", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)), "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)), "whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 31))} {
		if err := ParseSecret(s); !errors.Is(err, ErrInvalid) || len(s) > 8 && strings.Contains(err.Error(), s[6:]) {
			t.Errorf("%.12q: got %v", s, err)
		}
	}
}

func TestGuardBlocks(t *testing.T) {
	for _, c := range []struct {
		addr string
		ok   bool
	}{
		{"93.184.216.34", true},
		{"2606:2800:220:1::1", true},
		{"8.8.8.8", true},
		{"127.0.0.1", false},
		{"127.8.8.8", false},
		{"10.0.0.1", false},
		{"172.16.0.1", false},
		{"172.32.0.1", true},
		{"192.168.1.1", false},
		{"169.254.169.254", false},
		{"100.64.0.1", false},
		{"0.0.0.0", false},
		{"0.1.2.3", false},
		{"224.0.0.1", false},
		{"255.255.255.255", false},
		{"240.0.0.1", false},
		{"198.18.0.1", false},
		{"192.0.2.1", false},
		{"::", false},
		{"::1", false},
		{"fe80::1", false},
		{"fe80::1%eth0", false},
		{"fc00::1", false},
		{"fd12::1", false},
		{"ff02::1", false},
		{"2001:db8::1", false},
		{"::ffff:127.0.0.1", false},
		{"::ffff:10.0.0.1", false},
		{"::ffff:8.8.8.8", true},
		{"::127.0.0.1", false},
		{"64:ff9b::7f00:1", false},
		{"64:ff9b::808:808", true},
		{"64:ff9b:1::1", false},
		{"2002:7f00:1::1", false},
		{"2002:808:808::1", true},
		{"2001:0:1::1", false},
		{"fec0::1", false},
	} {
		if err := (Guard{}).Check(netip.MustParseAddr(c.addr)); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: got %v, want allowed %v", c.addr, err, c.ok)
		}
	}
	g := Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if g.Check(netip.MustParseAddr("::ffff:127.0.0.1")) != nil || g.Check(netip.MustParseAddr("10.0.0.1")) == nil {
		t.Error("the allow list lets through the wrong addresses")
	}
}

func TestGuardURL(t *testing.T) {
	for _, c := range []struct {
		url string
		ok  bool
	}{
		{"https://example.com/hook?x=1", true},
		{"http://93.184.216.34:8080/", true},
		{"https://127.0.0.1/", false},
		{"https://2130706433/", false},
		{"https://0x7f000001/", false},
		{"https://0177.0.0.1/", false},
		{"https://0x7f.1/", false},
		{"https://127.1/", false},
		{"https://1.2.3.4.5/", false},
		{"https://localhost/", false},
		{"https://LOCALHOST./", false},
		{"https://a.localhost/", false},
		{"https://[::1]/", false},
		{"https://[::ffff:127.0.0.1]/", false},
		{"https://[fe80::1%25eth0]/", false},
		{"ftp://example.com/", false},
		{"//example.com/", false},
		{"https:///x", false},
		{"https://u:p@example.com/", false},
		{"https://example.com/#f", false},
		{"file:///etc/passwd", false},
		{"", false},
	} {
		if err := (Guard{}).CheckURL(c.url); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want allowed %v", c.url, err, c.ok)
		}
	}
}

// The address is checked when it is connected to: a name that resolves to the
// inside, the second time or in an odd spelling, gets nowhere.
func TestGuardAtConnectTime(t *testing.T) {
	hit := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	client := &http.Client{Transport: Guard{}.Transport(time.Second)}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		resp, err := client.Get("http://" + net.JoinHostPort(strings.Trim(host, "[]"), port))
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: got %v, want it blocked", host, err)
		}
	}
	if hit {
		t.Error("the inside was reached")
	}
}

func TestCloudEvents(t *testing.T) {
	m := &Message{ID: "m1", Type: "order.made", Source: "/shop", Subject: "a\"b%ü", Body: []byte(`{"n":1}`), Created: time.Unix(1, 0)}
	h := http.Header{}
	body, err := m.Encode(FormatStructured, h)
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	if h.Get("Content-Type") != "application/cloudevents+json" || e["specversion"] != "1.0" || e["id"] != "m1" || e["source"] != "/shop" || e["type"] != "order.made" ||
		e["datacontenttype"] != "application/json" || e["data"].(map[string]any)["n"] != 1.0 || e["time"] != "1970-01-01T00:00:01Z" {
		t.Errorf("structured: %v %s", h, body)
	}
	m.ContentType, m.Body = "application/x-thing", []byte{0, 1}
	body, _ = m.Encode(FormatStructured, http.Header{})
	if !strings.Contains(string(body), `"data_base64":"AAE="`) {
		t.Errorf("binary data: %s", body)
	}
	h = http.Header{}
	body, _ = m.Encode(FormatBinary, h)
	if string(body) != "\x00\x01" || h.Get("Content-Type") != "application/x-thing" || h.Get("Ce-Id") != "m1" || h.Get("Ce-Specversion") != "1.0" || h.Get("Ce-Subject") != "a%22b%25%C3%BC" {
		t.Errorf("binary: %v %q", h, body)
	}
}

func TestRedact(t *testing.T) {
	in := `{"token":"abc123secret","error":"bad Bearer eyJhbGciOi.eyJzdWIi.sig for ann@example.com", "password": "hunter22"} key whsec_MfKQ9r8GKYqrTwjUPD8 and own-token-4711` + "\x00\x1b[31m"
	out := Redact([]byte(in), "Bearer own-token-4711")
	for _, secret := range []string{"abc123secret", "eyJhbGciOi", "hunter22", "MfKQ9r8", "own-token-4711", "ann@example.com", "\x00", "\x1b"} {
		if strings.Contains(out, secret) {
			t.Errorf("%q is left in %s", secret, out)
		}
	}
	if !strings.Contains(out, "bad") {
		t.Errorf("nothing is left: %s", out)
	}
	if n := len(Redact([]byte(strings.Repeat("ü", 5000)), "")); n > MaxResponse {
		t.Errorf("%d bytes kept", n)
	}
}

func TestMessagesAreChecked(t *testing.T) {
	ok := func() Message { return Message{Endpoints: []string{"a"}, Body: []byte("{}")} }
	for _, c := range []struct {
		name string
		edit func(*Message)
	}{
		{"no endpoint", func(m *Message) { m.Endpoints = nil }},
		{"id with a space", func(m *Message) { m.ID = "a b" }},
		{"id with a line break", func(m *Message) { m.ID = "a\r\nX: 1" }},
		{"long key", func(m *Message) { m.IdempotencyKey = strings.Repeat("k", 65) }},
		{"large body", func(m *Message) { m.Body = make([]byte, maxMessageSize+1) }},
		{"authorization", func(m *Message) { m.Headers = []Header{{Name: "authorization", Value: "x"}} }},
		{"signature", func(m *Message) { m.Headers = []Header{{Name: "Webhook-Signature", Value: "x"}} }},
		{"header with a line break", func(m *Message) { m.Headers = []Header{{Name: "X-A", Value: "1\r\nX-B: 2"}} }},
		{"header name", func(m *Message) { m.Headers = []Header{{Name: "X A", Value: "1"}} }},
		{"content type", func(m *Message) { m.ContentType = "a\nb" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ok()
			if c.edit(&m); !errors.Is(m.check(), ErrInvalid) {
				t.Errorf("accepted: %+v", m)
			}
		})
	}
	m := ok()
	if err := m.check(); err != nil {
		t.Error(err)
	}
	m.ID = strings.Repeat("i", 128)
	if k := m.SentKey(); len(k) != 64 || k != m.SentKey() {
		t.Errorf("key of a long id is %q", k)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", []byte("x"))
	f.Add("whpk_", "-1", "v1a, v1,", []byte{})
	f.Fuzz(func(t *testing.T, secret, stamp, sig string, body []byte) {
		if Verify(secret, "msg_1", stamp, sig, body, time.Unix(1614265330, 0)) == nil {
			var s Signer
			n, _ := strconv.ParseInt(stamp, 10, 64)
			if s.Add(secret) == nil && !strings.Contains(sig, strings.Fields(s.Sign("msg_1", time.Unix(n, 0), body))[0][3:10]) {
				t.Errorf("accepted %q", sig)
			}
		}
	})
}

func FuzzCheckURL(f *testing.F) {
	for _, u := range []string{"https://example.com", "http://[::1]:80", "http://0x7f.1", "http://%31", "http://a\x00"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) { _ = Guard{}.CheckURL(u) })
}
