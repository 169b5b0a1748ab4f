package policyfile

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func routeFile(route string) string {
	return "dependencies:\n  shop: {url: http://shop.internal}\ngateway:\n  access_log: 10%\n  routes:\n    - {dependency: shop, " + route + "}\n    - {dependency: shop, prefix: /other, methods: [GET]}\n"
}

// TestRoutes: what a route says is read, and comes back from what is written.
func TestRoutes(t *testing.T) {
	for text, want := range map[string]Route{
		"prefix: /a":                                   {Prefix: "/a"},
		"prefix: /a/, host: Shop.Example":              {Prefix: "/a", Host: "shop.example"},
		"prefix: /other":                               {Prefix: "/other"},
		"prefix: /other, methods: [PUT, PUT]":          {Prefix: "/other", Methods: []string{"PUT"}},
		"prefix: /a, headers: {x-track: beta, X-B: 1}": {Prefix: "/a", Headers: map[string]string{"X-Track": "beta", "X-B": "1"}},
		"prefix: /a, timeout: 2s, max_body: 10MiB, max_concurrent: 20": {
			Prefix: "/a", Timeout: 2 * time.Second, MaxBody: 10 << 20, MaxConcurrent: 20,
		},
		"prefix: /a, body_limit: 10MiB":  {Prefix: "/a", BodyLimit: 10 << 20},
		"prefix: /a, body_limit: 64 MiB": {Prefix: "/a", BodyLimit: MaxBodyLimit},
		"prefix: /a, body_limit: 1":      {Prefix: "/a", BodyLimit: 1},
		"prefix: /a, keep_prefix: true":  {Prefix: "/a", KeepPrefix: true},
		"prefix: /a, stream: true":       {Prefix: "/a", Stream: true},
	} {
		f, err := Parse("f", []byte(routeFile(text)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		written, err := Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("f", written)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", text, err, written)
		}
		want.Dependency = "shop"
		for _, f := range []*File{f, back} {
			got := f.Gateway.Routes[0]
			got.At = Position{}
			if len(got.Headers) == 0 {
				got.Headers = nil
			}
			if !reflect.DeepEqual(got, want) || f.Gateway.AccessLog != 0.1 {
				t.Errorf("%s: got %+v and %v, want %+v\n%s", text, got, f.Gateway.AccessLog, want, written)
			}
		}
		if got := f.Dependencies[0].BodyLimit; got != want.BodyLimit {
			t.Errorf("%s: the body limit of the dependency is %d", text, got)
		}
		if changes := Diff(f, back); len(changes) > 0 {
			t.Errorf("%s: a difference to itself: %v", text, changes)
		}
	}
}

// TestRouteFaults: each fault of a route is named where it is.
func TestRouteFaults(t *testing.T) {
	for text, want := range map[string]string{
		"methods: [GET]":                                                "a route needs prefix or host, such as prefix: /payments",
		"prefix: /other, methods: [GET, PUT]":                           "a second route for /other, first on line 6",
		"prefix: /a, methods: [FETCH]":                                  `a method is "FETCH"`,
		"prefix: /a, headers: {Host: a}":                                "headers has Host: use the key host",
		"prefix: /a, headers: {\"X Y\": a}":                             `"X Y" is not the name of a header`,
		"prefix: /a, headers: {X-Y: a, x-y: b}":                         "header X-Y appears twice",
		"prefix: /a, headers: [X-Y]":                                    "headers is a list: want a mapping",
		"prefix: /a, timeout: 0s":                                       "timeout is",
		"prefix: /a, timeout: 5":                                        "timeout is",
		"prefix: /a, stream: true, timeout: 5s":                         "a route for streams has a timeout",
		"prefix: /a, methods: []":                                       "methods is empty: leave it out to allow all methods",
		"prefix: /a, stream: true, idempotency: on":                     "a route for streams has idempotency keys",
		"prefix: /a, max_body: -1":                                      "max_body is",
		"prefix: /a, body_limit: 65MiB":                                 `f:6:50: body_limit is "65MiB": want 1 byte to 64MiB`,
		"prefix: /a, body_limit: 9999999999MiB":                         `f:6:50: body_limit is "9999999999MiB": want 1 byte to 64MiB`,
		"prefix: /a, body_limit: 0":                                     `f:6:50: body_limit is "0": want 1 byte to 64MiB`,
		"prefix: /a, body_limit: 10MB":                                  `f:6:50: body_limit is "10MB": want a size such as 64KiB or 1MiB`,
		"prefix: /a, body_limit: [1MiB]":                                "body_limit is a list: want a size such as 64KiB or 1MiB",
		"prefix: /a, max_concurrent: 0":                                 "max_concurrent is 0: leave it out to set no bound",
		"prefix: /a, max_concurent: 5":                                  `unknown key "max_concurent" in a route: did you mean max_concurrent?`,
		"prefix: /a}\n    - {prefix: /a, dependency: shop, headers: {}": "a second route for /a, first on line 6",
	} {
		_, err := Parse("f", []byte(routeFile(text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]float64{"on": 1, "off": 0, "true": 1, "25%": 0.25, "0.5": 0.5, "0": 0, "0%": 0} {
		f, err := Parse("f", []byte(strings.Replace(routeFile("prefix: /a"), "10%", text, 1)))
		if err != nil || f.Gateway.AccessLog != want {
			t.Errorf("access_log: %s: %v, %v", text, f, err)
		}
	}
	for text, want := range map[string]string{
		"some": `f:4:15: gateway.access_log is "some": want on, off, or a share such as 20% or 0.2`,
		"no":   `f:4:15: gateway.access_log is "no": want on, off, or a share such as 20% or 0.2`,
		"[on]": "f:4:15: gateway.access_log is a list: want on, off, or a share such as 20% or 0.2",
		"110%": `f:4:15: gateway.access_log is "110%", which is not a share: write 20% or 0.2`,
	} {
		_, err := Parse("f", []byte(strings.Replace(routeFile("prefix: /a"), "10%", text, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("access_log: %s: got %v, want %s", text, err, want)
		}
	}
}
