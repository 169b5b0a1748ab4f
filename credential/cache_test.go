package credential_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/credential"
)

func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
			time.Sleep(time.Second)
			n++
			return credential.Token{Value: fmt.Sprintf("Bearer secret-%d", n), Expires: time.Now().Add(time.Minute)}, nil
		}))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if tok, err := c.Token(t.Context()); err != nil || tok.Value != "Bearer secret-1" {
					t.Errorf("got %q, %v", tok.Value, err)
				}
			})
		}
		wg.Wait()
		if n != 1 {
			t.Errorf("%d fetches for twenty callers, want 1", n)
		}
		first, _ := c.Token(t.Context())
		if s := fmt.Sprintf("%v %+v %#v %s", first, first, first, first); strings.Contains(s, "secret") {
			t.Errorf("printing a token shows it: %s", s)
		}
		c.Refused(first)
		second, err := c.Token(t.Context())
		if err != nil || n != 2 {
			t.Fatalf("after a refusal: %d fetches, %v", n, err)
		}
		c.Refused(first) // late
		if again, _ := c.Token(t.Context()); again.Value != second.Value || n != 2 {
			t.Error("the refusal of an old token dropped the new one")
		}
		time.Sleep(55 * time.Second)
		if _, _ = c.Token(t.Context()); n != 3 {
			t.Errorf("%d fetches, want a third shortly before the end", n)
		}
	})
}

func TestCredentialsAreNeverWeakened(t *testing.T) {
	values := []string{"Bearer a", "Basic b", ""}
	c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		v := values[0]
		values = values[1:]
		return credential.Token{Value: v}, nil
	}))
	first, err := c.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Refused(first)
	for range 2 {
		if _, err := c.Token(t.Context()); !errors.Is(err, credential.ErrWeak) {
			t.Errorf("got %v, want ErrWeakCredential", err)
		}
	}
	failing := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		return credential.Token{}, credential.ErrRevoked
	}))
	if _, err := failing.Token(t.Context()); !errors.Is(err, credential.ErrRefreshFailed) || !errors.Is(err, credential.ErrRevoked) {
		t.Errorf("got %v, want ErrRefreshFailed and ErrRevoked", err)
	}
}

// A caller that gives up leaves the fetch to those that still wait for it.
func TestFetchOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
			time.Sleep(2 * time.Second)
			return credential.Token{Value: "Bearer a"}, nil
		}))
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Token(first); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first caller got %v, want the end of its own context", err)
		}
		if tok, err := c.Token(t.Context()); err != nil || tok.Value != "Bearer a" {
			t.Errorf("the second caller got %q, %v", tok.Value, err)
		}
	})
}

// A source that ends its goroutine, as FailNow of a test does, has failed: no caller waits
// for what will not come, and the next one has it asked again.
func TestSourceThatEndsItsGoroutine(t *testing.T) {
	n := 0
	c := credential.New(credential.SourceFunc(func(context.Context) (credential.Token, error) {
		if n++; n == 1 {
			runtime.Goexit()
		}
		return credential.Token{Value: "Bearer t"}, nil
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Token(ctx); !errors.Is(err, credential.ErrRefreshFailed) {
		t.Fatalf("got %v", err)
	}
	if got, err := c.Token(ctx); err != nil || got.Value != "Bearer t" {
		t.Errorf("got %v, %v", got, err)
	}
}
