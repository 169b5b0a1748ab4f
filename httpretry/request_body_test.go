package httpretry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// streamed returns a PUT whose body can be read once, and that body.
func streamed(t *testing.T, text string) (*http.Request, *countedBody) {
	req := newRequest(t, http.MethodPut, "http://payments.test/", "", "")
	body := &countedBody{Reader: strings.NewReader(text)}
	req.Body, req.ContentLength = body, int64(len(text))
	return req, body
}

func TestBodiesUpToTheLimitAreReplayed(t *testing.T) {
	const limit = 64 << 10
	for _, tc := range []struct {
		name     string
		size     int
		opts     []httpretry.Option
		requests int
	}{
		{"small", 10, nil, 4},
		{"exactly the limit", limit, nil, 4},
		{"one over the limit", limit + 1, nil, 1},
		{"far over the limit", 1 << 20, nil, 1},
		{"over a limit of its own", 11, []httpretry.Option{httpretry.WithBodyLimit(10)}, 1},
		{"at a limit of its own", 10, []httpretry.Option{httpretry.WithBodyLimit(10)}, 4},
		{"nothing is kept", 1, []httpretry.Option{httpretry.WithBodyLimit(0)}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Repeat("0123456789abcdef", tc.size/16+1)[:tc.size]
			s := &script{steps: []step{status(503)}}
			req, body := streamed(t, text)
			resp, err := over(t, s, fast, tc.opts...).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			sent := s.requests()
			if len(sent) != tc.requests {
				t.Fatalf("%d requests, want %d", len(sent), tc.requests)
			}
			for i, r := range sent {
				if r.body != text {
					t.Errorf("request %d had %d bytes of body, want %d", i, len(r.body), len(text))
				}
			}
			e, _ := httpretry.Outcome(resp)
			if tc.requests == 1 && !errors.Is(e, forbear.ErrNotReplayable) {
				t.Errorf("the outcome is %v, want it to say that the body is gone", e)
			}
			if body.closes() != 1 {
				t.Errorf("the body was closed %d times", body.closes())
			}
		})
	}
}

func TestBodiesComeFromGetBody(t *testing.T) {
	// Larger than any buffer, and also for a status that only the policy retries.
	text := strings.Repeat("x", 1<<20)
	for _, answer := range []int{503, 404} {
		p, err := forbear.Profile("lattice")
		if err != nil {
			t.Fatal(err)
		}
		p.Backoff = fast.Backoff
		s := &script{steps: []step{status(answer), status(answer), status(200)}}
		req, first := streamed(t, text)
		bodies := []*countedBody{first}
		req.GetBody = func() (io.ReadCloser, error) {
			b := &countedBody{Reader: strings.NewReader(text)}
			bodies = append(bodies, b)
			return b, nil
		}
		resp, err := over(t, s, p).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 || len(s.requests()) != 3 {
			t.Fatalf("%d: status %d after %d requests", answer, resp.StatusCode, len(s.requests()))
		}
		for i, r := range s.requests() {
			if r.body != text {
				t.Errorf("%d: request %d had %d bytes", answer, i, len(r.body))
			}
		}
		for i, b := range bodies {
			if b.closes() != 1 {
				t.Errorf("%d: body %d was closed %d times", answer, i, b.closes())
			}
		}
	}
}

func TestEveryBodyIsClosedOnce(t *testing.T) {
	expired := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, -1)
	}
	soon := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx) // no deadline that a wait would not fit into
		time.AfterFunc(time.Second, cancel)
		return ctx, cancel
	}
	forever := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return ctx, func() {}
	}
	for _, tc := range []struct {
		name  string
		steps []step
		p     forbear.Policy
		ctx   func(context.Context) (context.Context, context.CancelFunc)
	}{
		{"success", []step{status(200)}, fast, forever},
		{"success after retries", []step{status(503), status(503), status(200)}, fast, forever},
		{"exhausted", []step{status(503)}, fast, forever},
		{"terminal", []step{status(400)}, fast, forever},
		{"network error", []step{fail(io.EOF)}, fast, forever},
		{"unknown error", []step{fail(errors.New("gremlins"))}, fast, forever},
		{"retries off", []step{status(503)}, forbear.Policy{Disabled: true}, forever},
		{"over before it began", []step{status(200)}, fast, expired},
		{"over during the wait", []step{status(503, "Retry-After: 20")}, forbear.Policy{}, soon},
		{"too long a Retry-After", []step{status(503, "Retry-After: 200")}, fast, forever},
	} {
		for _, getBody := range []bool{false, true} {
			for _, method := range []string{http.MethodPut, http.MethodPost} {
				t.Run(tc.name+" "+method, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := tc.ctx(t.Context())
						defer cancel()
						req, body := streamed(t, "payload")
						req = req.WithContext(ctx)
						req.Method = method
						bodies := []*countedBody{body}
						if getBody {
							req.GetBody = func() (io.ReadCloser, error) {
								b := &countedBody{Reader: strings.NewReader("payload")}
								bodies = append(bodies, b)
								return b, nil
							}
						}
						resp, err := over(t, &script{steps: tc.steps}, tc.p).RoundTrip(req)
						if (resp == nil) == (err == nil) {
							t.Fatalf("got %v and %v, want one of both", resp, err)
						}
						if resp != nil {
							_ = resp.Body.Close()
						}
						for i, b := range bodies {
							if b.closes() != 1 {
								t.Errorf("GetBody %v: body %d of %d was closed %d times", getBody, i, len(bodies), b.closes())
							}
						}
					})
				})
			}
		}
	}
}

// TestGetBodyFails: the answer that was there is handed over, and the outcome
// holds both it and what GetBody said.
func TestGetBodyFails(t *testing.T) {
	gone := errors.New("the file is gone")
	s := &script{steps: []step{status(503)}}
	req, body := streamed(t, "payload")
	req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
	resp, err := over(t, s, fast).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	e, _ := httpretry.Outcome(resp)
	code, ok := errors.AsType[httpretry.StatusError](e)
	if !errors.Is(e, forbear.ErrNotReplayable) || !errors.Is(e, gone) || !ok || code != 503 {
		t.Errorf("the outcome is %v", e)
	}
	if len(s.requests()) != 1 || body.closes() != 1 || readAll(t, resp.Body) != "Service Unavailable" {
		t.Errorf("%d requests, the body was closed %d times", len(s.requests()), body.closes())
	}

	s = &script{steps: []step{fail(io.ErrUnexpectedEOF)}}
	req, _ = streamed(t, "payload")
	req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
	_, err = over(t, s, fast).RoundTrip(req)
	if !errors.Is(err, forbear.ErrNotReplayable) || !errors.Is(err, gone) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// TestUploadsAreSentAsTheyCome is full duplex: the server answers and echoes
// while the upload goes on, and nothing is read ahead of it.
func TestUploadsAreSentAsTheyCome(t *testing.T) {
	s, _ := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := c.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		_ = c.Flush() // the headers, before anything of the body is there
		buf := make([]byte, 64)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				_, _ = w.Write(buf[:n])
				_ = c.Flush()
			}
			if err != nil {
				return
			}
		}
	})
	upload, feed := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, upload)
	if err != nil {
		t.Fatal(err)
	}
	resp, _, err := send(t, req, fast)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	for _, word := range []string{"ping", "pong", "over"} {
		if _, err := io.WriteString(feed, word); err != nil {
			t.Fatal(err)
		}
		n, err := io.ReadFull(resp.Body, buf[:len(word)])
		if err != nil || string(buf[:n]) != word {
			t.Fatalf("echo %q, %v, want %q", buf[:n], err, word)
		}
	}
	_ = feed.Close()
	if rest := readAll(t, resp.Body); rest != "" {
		t.Errorf("and then %q", rest)
	}
}

// TestEarlyAnswerToAnUploadIsNotHeldUp: the server refuses before it has the
// body, of which the client never gives more than a part.
func TestEarlyAnswerToAnUploadIsNotHeldUp(t *testing.T) {
	s, n := faulty(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusForbidden)
	})
	upload, feed := io.Pipe()
	t.Cleanup(func() { _ = feed.Close() })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, upload)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(feed, "the beginning") }()
	resp, _, err := send(t, req, fast)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusForbidden || n.Load() != 1 {
		t.Errorf("status %d after %d requests", resp.StatusCode, n.Load())
	}
}

// A retry may begin while the last attempt is still reading the upload: both
// read one source, and the server gets it whole.
func TestRetryWhileTheUploadIsUnderWay(t *testing.T) {
	text := strings.Repeat("0123456789", 3000)
	s, n := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(httpretry.HeaderAttempt) != "2" {
			w.WriteHeader(http.StatusServiceUnavailable) // before the body
			return
		}
		data, err := io.ReadAll(r.Body)
		if err != nil || string(data) != text {
			t.Errorf("the server got %d bytes, %v", len(data), err)
		}
	})
	upload, feed := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, upload)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for part := text; part != ""; part = part[1000:] {
			if _, err := io.WriteString(feed, part[:1000]); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
		}
		_ = feed.Close()
	}()
	resp, _, err := send(t, req, fast)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || n.Load() != 3 {
		t.Errorf("status %d after %d requests, want 200 after 3", resp.StatusCode, n.Load())
	}
}

// seekable hides what it reads from, as an os.File does.
type seekable struct{ io.ReadSeeker }

// A body that can seek is sent again from where it stood, whatever its length, and
// costs no memory; it is closed once, at the end.
func TestBodiesThatSeek(t *testing.T) {
	const length = 3 << 20
	content := make([]byte, length)
	for i := range content {
		content[i] = byte(i % 251)
	}
	path := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(path, append([]byte("skipped"), content...), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(int64(len("skipped")), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	s, _ := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		if n := requests.Add(1); n == 1 { // after a part of it
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			panic(http.ErrAbortHandler)
		} else if n == 2 {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("received %d bytes that are not the file's (%v)", len(got), err)
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, file)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = length
	resp, _, err := send(t, req, fast)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || requests.Load() != 3 {
		t.Errorf("status %d after %d requests", resp.StatusCode, requests.Load())
	}
	if _, err := file.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// What cannot say where it stands is kept like any other reader.
func TestPipesDoNotSeek(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString("payload")
	_ = w.Close()
	s := &script{steps: []step{status(503), status(200)}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://files.test/", r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := over(t, s, fast).RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	if got := s.requests(); len(got) != 2 || got[1].body != "payload" {
		t.Errorf("sent %v", got)
	}
}

// A body that cannot be sent again says why.
func TestUnreplayableBodiesSayWhy(t *testing.T) {
	for _, tc := range []struct {
		length int64
		opts   []httpretry.Option
		want   string
	}{
		{210 << 10, nil, "body of 210 KiB without GetBody or Seek; WithBodyLimit (in a gateway's route body_limit) is 64 KiB"},
		{-1, nil, "body of unknown length without GetBody or Seek; WithBodyLimit (in a gateway's route body_limit) is 64 KiB"},
		{20 << 20, []httpretry.Option{httpretry.WithBodyLimit(1 << 20)}, "body of 20 MiB without GetBody or Seek; WithBodyLimit (in a gateway's route body_limit) is 1 MiB"},
		{500, []httpretry.Option{httpretry.WithBodyLimit(0)}, "body of 500 bytes without GetBody or Seek; WithBodyLimit (in a gateway's route body_limit) is 0 bytes"},
	} {
		s := &script{steps: []step{status(503)}}
		body := struct{ io.Reader }{strings.NewReader(strings.Repeat("x", max(int(tc.length), 100<<10)))}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://files.test/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = tc.length
		resp, err := over(t, s, fast, tc.opts...).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		e, ok := httpretry.Outcome(resp)
		if !ok || e.Reason != reason.NotReplayable || !strings.Contains(e.Error(), "http status 503") ||
			!strings.HasSuffix(e.Error(), tc.want) || !errors.Is(e, httpretry.StatusError(503)) {
			t.Errorf("got %v, want it to end with %q", e, tc.want)
		}
	}
}

// GetBody is asked for a retry alone.
func TestGetBodyIsForRetries(t *testing.T) {
	var asked int
	req := newRequest(t, http.MethodPut, "http://payments.test/", "payload", "")
	req.GetBody = func() (io.ReadCloser, error) { asked++; return nil, errors.New("file is gone") }
	resp, err := over(t, &script{steps: []step{status(404)}}, fast).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	e, _ := httpretry.Outcome(resp)
	if asked != 0 {
		t.Errorf("GetBody was asked %d times for a 404: %v", asked, e)
	}
}

// gatedBody gives its parts one by one; before each but the first it waits until it is
// told to go on.
type gatedBody struct {
	parts []string
	asked chan struct{}
	more  chan struct{}
	begun bool
}

func (b *gatedBody) Read(p []byte) (int, error) {
	if b.begun {
		b.asked <- struct{}{}
		<-b.more
	}
	b.begun = true
	if len(b.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.parts[0])
	b.parts = b.parts[1:]
	return n, nil
}

func (b *gatedBody) Close() error { return nil }

// A Read of the body may outlast its attempt. What it gives belongs to the next attempt,
// though that is more than is kept: a body without its beginning must never go out, and
// neither must a part of it pass for the whole.
func TestReadThatOutlastsItsAttempt(t *testing.T) {
	for _, when := range []string{"the wait", "the next attempt"} {
		t.Run("ends in "+when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const text = "0123456789abcdefghijABCDEFGHIJ"
				body := &gatedBody{
					parts: []string{text[:10], text[10:20], text[20:]},
					asked: make(chan struct{}, 9), more: make(chan struct{}),
				}
				var got []byte
				stale := make(chan error, 1)
				next := roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Header.Get(httpretry.HeaderAttempt) == "0" {
						go func() { // net/http, too, reads on behind a response
							_, err := io.Copy(io.Discard, r.Body)
							stale <- err
						}()
						<-body.asked
						if when == "the wait" {
							time.AfterFunc(500*time.Millisecond, func() { body.more <- struct{}{} })
						}
						return status(503, "Retry-After: 1")(r)
					}
					close(body.more)
					var err error
					if got, err = io.ReadAll(r.Body); err != nil {
						return nil, err
					}
					return status(200)(r)
				})
				req := newRequest(t, http.MethodPut, "http://payments.test/", "", "")
				req.Body, req.ContentLength = body, -1
				resp, err := httpretry.NewTransport(next, quiet(t, fast), httpretry.WithBodyLimit(15)).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if _ = resp.Body.Close(); string(got) != text {
					t.Errorf("the second attempt sent %q, want %q", got, text)
				}
				if err := <-stale; err == nil {
					t.Error("what the first attempt sent of the body ended like the whole")
				}
			})
		})
	}
}
