package forward

import (
	"net/url"
	"testing"
)

// TestAim: what a request line says after the prefix arrives byte for byte, or the
// request is refused.
func TestAim(t *testing.T) {
	for _, tc := range []struct{ target, prefix, sent, want string }{
		{"http://up", "/p", "/p", "/"},
		{"http://up", "/p", "/p/", "/"},
		{"http://up", "/p", "/p?", "/?"},
		{"http://up", "/p", "/p/a?x=%41&y=;&z", "/a?x=%41&y=;&z"},
		{"http://up/v1", "/p", "/p", "/v1"},
		{"http://up/v1", "/p", "/p/", "/v1/"},
		{"http://up/v1", "/p", "/p/a", "/v1/a"},
		{"http://up/v1/", "/p", "/p/a", "/v1/a"},
		{"http://up/v%2F1", "/p", "/p/a", "/v%2F1/a"},
		{"http://up", "", "/a//b", "/a//b"},
		{"http://up", "/p", "/p/%65", "/%65"},
		{"http://up", "/p", "/p/%2Fa", "/%2Fa"},
		{"http://up", "/p", "/p/%2fa%2Fb", "/%2fa%2Fb"},
		{"http://up", "/p", "/%70/a", "/a"},
		{"http://up", "/p", "/p/a;v=1,2=@:!$&'()*+", "/a;v=1,2=@:!$&'()*+"},
		{"http://up", "/p", "/p/a|b^{c}\"<d>", "/a|b^{c}\"<d>"},
		{"http://up", "/p", "/p/\u00e9", "/\u00e9"},
		{"http://up", "/p", "/p//a|b", ""}, // opaque, it would be taken for a host
		{"http://up", "/p", "/p//a", "//a"},
		{"http://up", "/p", "/p%2Fa", ""}, // matched by what no segment says
		{"http://up", "/p", "/p/../a", ""},
		{"http://up", "/p", "/p/%2e%2e/a", ""},
		{"http://up", "/p", "/p/%2e", ""},
		{"http://up", "/p", "/p/..%2Fa", ""},
		{"http://up", "/p", "/p/a#b", ""},
		{"http://up", "/p", "/p/...", "/..."},
		{"http://up", "/p", "/p/.well-known", "/.well-known"},
		{"http://up", "/p", "http://other/p/a", "/a"},
		{"http://up", "/p", "/p/a/", "/a/"},
		{"http://up", "/p", "/p/%00", "/%00"},
		{"http://up", "/p", "/p/a%20b+c", "/a%20b+c"},
	} {
		t.Run(tc.sent, func(t *testing.T) {
			target, err := url.Parse(tc.target)
			if err != nil {
				t.Fatal(err)
			}
			in, err := url.ParseRequestURI(tc.sent)
			if err != nil {
				t.Fatal(err)
			}
			f := Target{URL: target, Prefix: tc.prefix}
			var u url.URL
			got := ""
			if f.aim(&u, in) {
				got = u.RequestURI()
				if u.Host != "up" {
					t.Errorf("host %q", u.Host)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// FuzzAim: a path that is passed on is the one that came, less its prefix.
func FuzzAim(f *testing.F) {
	for _, seed := range []string{"/p", "/p/a", "/%70/%2e%2e", "/p//a|b", "/p/%zz", "/p/a?b#c"} {
		f.Add(seed)
	}
	target := &url.URL{Scheme: "http", Host: "up"}
	f.Fuzz(func(t *testing.T, sent string) {
		in, err := url.ParseRequestURI(sent)
		if err != nil || in.Host != "" || in.Scheme != "" {
			return
		}
		var u url.URL
		if !(&Target{URL: target, Prefix: "/p"}).aim(&u, in) {
			return
		}
		got, want := u.RequestURI(), sent
		if len(want) < len(got) || want[len(want)-len(got):] != got && got[0] == '/' && got != "/" && got[:2] != "/?" {
			t.Errorf("%q became %q", sent, got)
		}
		if u.Host != "up" || u.Scheme != "http" {
			t.Errorf("%q goes to %s", sent, u.Host)
		}
	})
}
