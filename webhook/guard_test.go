package webhook

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

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
		{"::ffff:0:127.0.0.1", false},
		{"::ffff:0:8.8.8.8", false},
		{"4000::1", false},
		{"1fff::1", false},
		{"100::1", false},
		{"5f00::1", false},
		{"168.63.129.16", false},
		{"168.63.129.17", true},
	} {
		if err := (Guard{}).Check(netip.MustParseAddr(c.addr)); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: got %v, want allowed %v", c.addr, err, c.ok)
		}
	}
	g := Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if in := g.Inside(); in.Check(netip.MustParseAddr("127.0.0.1")) != nil || !errors.Is(in.Check(netip.MustParseAddr("8.8.8.8")), ErrBlocked) || !errors.Is(in.CheckURL("http://8.8.8.8/"), ErrBlocked) {
		t.Error("what is inside and no more lets through the wrong addresses")
	}
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
		{"https://example.com:0/", false},
		{"https://example.com:99999/", false},
		{"https://example.com:65536/", false},
		{"https://example.com:65535/", true},
		{"https://example.com:/", true},
		{"https://[::ffff:0:127.0.0.1]/", false},
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
		elsewhere := &http.Client{Transport: Guard{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}.Inside().Transport(time.Second)}
		if resp, err = elsewhere.Get("http://" + net.JoinHostPort(strings.Trim(host, "[]"), port)); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s is not what is allowed inside: got %v", host, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	if hit {
		t.Error("the inside was reached")
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, u := range []string{"https://example.com", "http://[::1]:80", "http://0x7f.1", "http://%31", "http://a\x00"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) { _ = Guard{}.CheckURL(u) })
}
