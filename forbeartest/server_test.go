package forbeartest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/forbeartest"
)

func get(t *testing.T, c *http.Client, url string) (*http.Response, string, error) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func TestServerFollowsItsScript(t *testing.T) {
	srv := forbeartest.NewServer(t,
		forbeartest.Status(503).With("Retry-After", "1").With("retry-after", "2"),
		forbeartest.Text(200, "hello"),
	)
	resp, _, err := get(t, srv.Client(), srv.URL+"/a?b=c")
	if err != nil || resp.StatusCode != 503 || !slices.Equal(resp.Header["Retry-After"], []string{"1", "2"}) {
		t.Fatalf("first: got %v, %v", resp, err)
	}
	for range 2 { // the last step repeats
		resp, body, err := get(t, srv.Client(), srv.URL)
		if err != nil || resp.StatusCode != 200 || body != "hello" {
			t.Errorf("got %v, %q, %v", resp, body, err)
		}
	}
	r := srv.Requests()
	if len(r) != 3 || r[0].Method != "GET" || r[0].Path != "/a" || r[0].Query != "b=c" || r[0].Reused || !r[1].Reused || r[2].Number != 3 {
		t.Errorf("got %+v", r)
	}
	if len(srv.Gaps()) != 2 || len(srv.Keys()) != 3 {
		t.Errorf("gaps %v, keys %v", srv.Gaps(), srv.Keys())
	}
}

func TestServerRecordsBodies(t *testing.T) {
	srv := forbeartest.NewServer(t)
	req, _ := http.NewRequest("POST", srv.URL, strings.NewReader("amount=100"))
	req.Header.Set("Idempotency-Key", "k-1")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r := srv.Requests(); resp.StatusCode != 200 || string(r[0].Body) != "amount=100" || srv.Keys()[0] != "k-1" {
		t.Errorf("got %+v", r)
	}
}

// arrived waits for a request.
func arrived(srv *forbeartest.Server) {
	for len(srv.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestServerBreaks(t *testing.T) {
	fresh := func(srv *forbeartest.Server) *http.Client {
		srv.Client().CloseIdleConnections()
		return srv.Client()
	}
	t.Run("before the headers", func(t *testing.T) {
		srv := forbeartest.NewServer(t, forbeartest.Reset())
		if _, _, err := get(t, srv.Client(), srv.URL); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("after the headers", func(t *testing.T) {
		srv := forbeartest.NewServer(t, forbeartest.ResetAfterHeaders(200))
		resp, body, err := get(t, srv.Client(), srv.URL)
		if resp == nil || resp.StatusCode != 200 || body != "" || err == nil {
			t.Errorf("got %v, %q, %v", resp, body, err)
		}
	})
	t.Run("in the body", func(t *testing.T) {
		srv := forbeartest.NewServer(t, forbeartest.ResetMidBody(200, "onetwo"))
		resp, body, err := get(t, srv.Client(), srv.URL)
		if resp == nil || body != "one" || err == nil {
			t.Errorf("got %v, %q, %v", resp, body, err)
		}
	})
	t.Run("hang", func(t *testing.T) {
		srv := forbeartest.NewServer(t, forbeartest.Hang(), forbeartest.Status(200))
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			arrived(srv)
			time.Sleep(50 * time.Millisecond) // it might respond meanwhile
			leave()
		}()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
		if resp, err := srv.Client().Do(req); err == nil {
			_ = resp.Body.Close()
			t.Errorf("status %d, want no response", resp.StatusCode)
		}
		if resp, _, err := get(t, srv.Client(), srv.URL); err != nil || resp.StatusCode != 200 {
			t.Errorf("after the hang: got %v, %v", resp, err)
		}
	})
	t.Run("close ends a hang", func(t *testing.T) {
		srv := forbeartest.StartServer(forbeartest.Hang())
		failed := make(chan error)
		go func() {
			_, err := srv.Client().Get(srv.URL)
			failed <- err
		}()
		arrived(srv)
		srv.Close()
		srv.Close()
		if err := <-failed; err == nil {
			t.Error("the hanging request succeeded")
		}
	})
	t.Run("delay", func(t *testing.T) {
		srv := forbeartest.NewServer(t, forbeartest.Status(204).After(30*time.Millisecond))
		start := time.Now()
		resp, _, err := get(t, srv.Client(), srv.URL)
		if err != nil || resp.StatusCode != 204 || time.Since(start) < 30*time.Millisecond {
			t.Errorf("got %v, %v after %v", resp, err, time.Since(start))
		}
	})
	t.Run("on reuse", func(t *testing.T) {
		srv := forbeartest.NewServer(t, forbeartest.CloseOnReuse(201), forbeartest.CloseOnReuse(202))
		if resp, _, err := get(t, srv.Client(), srv.URL); err != nil || resp.StatusCode != 201 {
			t.Fatalf("fresh: got %v, %v", resp, err)
		}
		req, _ := http.NewRequest("PUT", srv.URL, http.NoBody) // not re-sent by net/http itself
		if _, err := srv.Client().Do(req); err == nil {
			t.Error("a reused connection was served")
		}
		if resp, _, err := get(t, fresh(srv), srv.URL); err != nil || resp.StatusCode != 202 {
			t.Errorf("fresh again: got %v, %v", resp, err)
		}
		if r := srv.Requests(); len(r) != 3 || !r[1].Reused {
			t.Errorf("got %+v", r)
		}
	})
}

func TestRoundTripper(t *testing.T) {
	down := errors.New("down")
	synctest.Test(t, func(t *testing.T) {
		rt := forbeartest.NewRoundTripper(
			forbeartest.Text(503, "busy").With("Retry-After", "9"),
			forbeartest.Reset(),
			forbeartest.Fail(down),
			forbeartest.ResetMidBody(200, "onetwo"),
			forbeartest.Hang(),
			forbeartest.Text(200, "late").After(time.Hour),
		)
		c := &http.Client{Transport: rt}
		if resp, body, err := get(t, c, "http://dependency.test/x"); err != nil || resp.StatusCode != 503 || body != "busy" || resp.Header.Get("Retry-After") != "9" {
			t.Errorf("status: got %v, %q, %v", resp, body, err)
		}
		if _, _, err := get(t, c, "http://dependency.test/"); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reset: got %v", err)
		}
		if _, _, err := get(t, c, "http://dependency.test/"); !errors.Is(err, down) {
			t.Errorf("fail: got %v", err)
		}
		if _, body, err := get(t, c, "http://dependency.test/"); body != "one" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("mid-body: got %q, %v", body, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://dependency.test/", nil)
		if _, err := c.Do(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hang: got %v", err)
		}
		start := time.Now()
		if _, body, err := get(t, c, "http://dependency.test/"); err != nil || body != "late" || time.Since(start) != time.Hour {
			t.Errorf("delay: got %q, %v after %v", body, err, time.Since(start))
		}
		if n := len(rt.Requests()); n != 6 {
			t.Errorf("%d requests, want 6", n)
		}
	})
}

func TestRoundTripperKeepsTheContract(t *testing.T) {
	rt := forbeartest.NewRoundTripper()
	resp, err := rt.RoundTrip(mustRequest(t, t.Context()))
	if err != nil || resp.StatusCode != 200 || resp.Header == nil {
		t.Fatalf("got %v, %v", resp, err)
	}
	resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a closed body was read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rt.RoundTrip(mustRequest(t, ctx)); !errors.Is(err, context.Canceled) || len(rt.Requests()) != 1 {
		t.Errorf("canceled: got %v and %d requests", err, len(rt.Requests()))
	}
}

func mustRequest(t *testing.T, ctx context.Context) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://dependency.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestStepsDoNotShareHeaders(t *testing.T) {
	base := forbeartest.Status(503).With("X", "1")
	a, b := base.With("X", "2"), base.With("X", "3")
	if a.Header["X"][1] != "2" || b.Header["X"][1] != "3" || len(base.Header["X"]) != 1 {
		t.Errorf("got %v, %v, %v", base.Header, a.Header, b.Header)
	}
}
