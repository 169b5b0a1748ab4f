package gateway_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

// TestUnreadUploadSparesOthers: an upload that its target does not read leaves room for the
// others on its connection.
func TestUnreadUploadSparesOthers(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	url := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(held)
			<-release
		}
		n, _ := io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/held" && n != 100<<10 {
			t.Errorf("got %d bytes", n)
		}
	}) + "/up"
	client := caller(t, nil, http2)
	first := make(chan struct{})
	go func() {
		defer close(first)
		resp, err := client.Post(url+"/held", "", bytes.NewReader(make([]byte, 64<<20)))
		if err == nil { // it has had its time perhaps
			_ = resp.Body.Close()
		}
	}()
	<-held
	defer func() {
		close(release)
		<-first
	}()
	for range 20 { // the first fills what it may meanwhile, and its window stays full
		others := make(chan error, 1)
		go func() {
			resp, err := client.Post(url+"/other", "", bytes.NewReader(make([]byte, 100<<10)))
			if err == nil {
				err = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					err = errors.New(resp.Status)
				}
			}
			others <- err
		}()
		select {
		case err := <-others:
			if err != nil {
				t.Error("another upload:", err)
			}
			select {
			case <-first: // what it had sent was in the way no longer
				t.Fatal("another upload stood still until the first was given up")
			default:
			}
		case <-time.After(10 * time.Second):
			t.Fatal("another upload stands still with the first")
		}
	}
}
