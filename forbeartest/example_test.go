package forbeartest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forbeartest"
)

func ExampleServer() {
	srv := forbeartest.StartServer( // in a test: NewServer(t, ...)
		forbeartest.Status(503).With("Retry-After", "1"),
		forbeartest.Text(200, "hello"),
	)
	defer srv.Close()

	for range 2 { // the client under test
		resp, err := srv.Client().Post(srv.URL+"/orders", "text/plain", strings.NewReader("one book"))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, len(body))
	}
	for _, r := range srv.Requests() {
		fmt.Printf("%d: %s %s %q\n", r.Number, r.Method, r.Path, r.Body)
	}
	// Output:
	// 503 0
	// 200 5
	// 1: POST /orders "one book"
	// 2: POST /orders "one book"
}

func ExampleRoundTripper() {
	rt := forbeartest.NewRoundTripper(forbeartest.Reset(), forbeartest.Text(200, "hello"))
	client := &http.Client{Transport: rt}

	_, err := client.Get("http://dependency.test/")
	fmt.Println(err)
	resp, err := client.Get("http://dependency.test/")
	fmt.Println(resp.StatusCode, err)
	// Output:
	// Get "http://dependency.test/": read tcp: read: connection reset by peer
	// 200 <nil>
}

func ExampleRecorder() {
	var rec forbeartest.Recorder
	r, err := forbear.New("payments", forbear.Policy{},
		forbear.WithObserver(rec.Observer()),
		forbear.WithRand(func() float64 { return 0.01 })) // one hundredth of each ceiling
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = r.Do(context.Background(), func(context.Context) error {
		if len(rec.Attempts()) < 2 {
			return forbear.Retryable(errors.New("busy"), forbear.Hint{})
		}
		return nil
	})
	fmt.Println(strings.Join(rec.Events(), "\n"))
	// Output:
	// attempt 1
	// failed: retryable_error
	// retry in 10ms
	// attempt 2
	// failed: retryable_error
	// retry in 20ms
	// attempt 3
	// success
}

func ExampleJitterFault() {
	// The first wait of each of ten calls, under a ceiling of one second.
	var waits []time.Duration
	for _, ms := range []int{812, 655, 980, 540, 733, 901, 612, 777, 868, 590} {
		waits = append(waits, time.Duration(ms)*time.Millisecond)
	}
	fmt.Println(forbeartest.JitterFault(waits, time.Second))
	// Output: equal_jitter_suspected
}
