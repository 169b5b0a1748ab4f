package httpretry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// TestR4EveryStatus walks over every status there can be: R-4's six are
// retried, in the profile lattice also 404, 409 and all of 5xx, and the rest
// never, with whatever method and key.
func TestR4EveryStatus(t *testing.T) {
	six := []int{408, 429, 500, 502, 503, 504}
	for _, profile := range []string{"standard", "cautious", "lattice"} {
		p, err := forbear.Profile(profile)
		if err != nil {
			t.Fatal(err)
		}
		for code := -1; code < 1000; code++ {
			listed := slices.Contains(six, code) ||
				profile == "lattice" && (code == 404 || code == 409 || code >= 500 && code < 600)
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "POST", "PATCH", "CONNECT", "MERGE", "get"} {
				safe := slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}, method)
				if httpretry.NeedsKey(method) == safe {
					t.Fatalf("NeedsKey(%q) = %v", method, safe)
				}
				for _, key := range []string{"", key} {
					req := &http.Request{Method: method, Header: http.Header{}}
					resp := &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody}
					s := forbear.State{NeedsKey: !safe, Key: key}
					want := "no"
					switch {
					case code >= 100 && code < 400:
						want = "success"
					case listed && (safe || key != ""):
						want = "retry"
					}
					if got := answer(&p, s, httpretry.Classify(req, resp, nil)); got != want {
						t.Fatalf("%s: %s %d, key %q: %s, want %s", profile, method, code, key, got, want)
					}
				}
			}
		}
	}
}

func TestErrorTypesAreBounded(t *testing.T) {
	req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
	for code, want := range map[int]string{
		503: "http_503", 429: "http_429", 404: "http_404", 999: "http_999",
		1000: "http_invalid", 0: "http_invalid", -7: "http_invalid",
	} {
		f := httpretry.Classify(req, &http.Response{StatusCode: code}, nil)
		if f.Type != want || !errors.Is(f.Err, httpretry.StatusError(code)) {
			t.Errorf("%d: %q, %v", code, f.Type, f.Err)
		}
	}
	if got := httpretry.StatusError(599).Error(); got != "http status 599" {
		t.Errorf("got %q", got)
	}
	if f := httpretry.Classify(req, nil, nil); f.Class != forbear.ClassUnknown {
		t.Errorf("nothing at all is of class %v", f.Class)
	}
}

// The caller's end is told from the attempt's own by the request's context, and
// not by the error, which looks the same.
func TestCallersEndIsNoTimeout(t *testing.T) {
	req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
	if f := httpretry.Classify(req, nil, context.DeadlineExceeded); f.Class != forbear.ClassTimeout {
		t.Errorf("with a live caller: %v", f.Class)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, errors.New("gremlins")} {
		if f := httpretry.Classify(req.WithContext(ctx), nil, err); f.Class != forbear.ClassCanceled || f.Err != err {
			t.Errorf("%v after the caller left: %v", err, f.Class)
		}
	}
	if f := httpretry.Classify(req, nil, context.Canceled); f.Class != forbear.ClassUnknown {
		t.Errorf("canceled by nobody we know: %v, want unknown, which stops", f.Class)
	}
}
