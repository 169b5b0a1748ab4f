package idempotency

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzKey looks for a header that is taken and should not be: a key is 1 to 64
// visible characters, and it is the same key when it comes back quoted.
func FuzzKey(f *testing.F) {
	for _, v := range []string{"7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", `"abc"; a=1`, `"a\"b"`, "", " ", `"`, "a,b", strings.Repeat("k", 65), "k\x00"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		key, err := readKey(http.Header{Header: {v}})
		if err != nil {
			if len(v) > 8 && strings.Contains(err.Error(), v) {
				t.Errorf("the error repeats the value: %v", err)
			}
			return
		}
		if CheckKey(key) != nil || key == "" || len(key) > 64 {
			t.Fatalf("%q was taken as %q", v, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := readKey(http.Header{Header: {quoted}}); err != nil || again != key {
			t.Errorf("%s is %q, %v; want %q", quoted, again, err, key)
		}
		if _, err := readKey(http.Header{Header: {v, v}}); err == nil {
			t.Errorf("two lines of %q were taken", v)
		}
	})
}

// FuzzFingerprint looks for two requests that are different and look the same:
// the parts are told apart, and only the order of a query's names is free.
func FuzzFingerprint(f *testing.F) {
	f.Add("/pay", "a=1&b=2", "{}", "application/json")
	f.Add("/", "%zz", "", "text/plain; charset=utf-8")
	f.Fuzz(func(t *testing.T, path, query, body, media string) {
		of := func(path, query, body, media string) string {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.URL = &url.URL{Path: path, RawQuery: query}
			r.Header.Set("Content-Type", media)
			return Fingerprint(r, []byte(body))
		}
		one := of(path, query, body, media)
		if one != of(path, query, body, media) {
			t.Error("one request, two fingerprints")
		}
		for name, other := range map[string]string{
			"a longer body": of(path, query, body+"x", media),
			"a longer path": of(path+"x", query, body, media),
			"another query": of(path, query+"&zz=1", body, media),
		} {
			if one == other {
				t.Errorf("%s has the same fingerprint: %q %q %q", name, path, query, body)
			}
		}
	})
}
