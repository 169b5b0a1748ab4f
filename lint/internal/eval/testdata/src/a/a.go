// Package a holds loops, each of which shows one thing that the interpreter knows.
package a

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

func grows(url string) {
	for n := range 4 {
		if _, err := http.Get(url); err == nil {
			return
		}
		time.Sleep(time.Second << n)
	}
}

// sums waits in a helper, for as long as a field says, which it changes.
type pause struct{ d time.Duration }

func (p *pause) take() { time.Sleep(p.d); p.d += time.Second }

func sums(url string) {
	p := &pause{d: time.Second}
	for {
		if _, err := http.Get(url); err == nil {
			return
		}
		p.take()
	}
}

func flagged(url string) {
	for again := true; again; {
		_, err := http.Get(url)
		again = false
		if err == nil {
			return
		}
	}
}

func byStatus(url string) {
	for {
		resp, err := http.Get(url)
		if err != nil || resp.StatusCode != 503 && resp.StatusCode != 429 {
			return
		}
	}
}

// look says three things: a response, whether to try again, and an error.
func look(url string) (resp *http.Response, again bool, err error) {
	if resp, err = http.Get(url); err != nil {
		return nil, true, err
	}
	return resp, resp.StatusCode >= 500, nil
}

func byResults(url string) {
	for {
		if _, again, _ := look(url); !again {
			return
		}
	}
}

type refusal struct{ code int }

func (r *refusal) Error() string { return "refused" }

func fetch(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 400 {
		return fmt.Errorf("fetch: %w", &refusal{resp.StatusCode})
	}
	return nil
}

func byError(url string) {
	for {
		err := fetch(url)
		var r *refusal
		if err == nil || !errors.As(err, &r) || r.code == 404 {
			return
		}
	}
}

// asks depends on a function that nobody knows, which is asked about the response.
func asks(url string, more func(*http.Response) bool) {
	for {
		resp, err := http.Get(url)
		if err != nil || !more(resp) {
			return
		}
	}
}

// either asks for the same on both ways.
func either(url string, more func(*http.Response) bool) {
	for {
		resp, err := http.Get(url)
		if err != nil {
			return
		}
		if more(resp) {
			resp.Body.Close()
		}
	}
}

// swaps lengthens one of two pauses, and waits for both.
func swaps(url string, slow bool) {
	short, long := pause{time.Second}, pause{time.Minute}
	for {
		if _, err := http.Get(url); err == nil {
			return
		}
		p := &short
		if slow {
			p = &long
		}
		p.d = time.Hour
		time.Sleep(short.d)
		time.Sleep(long.d)
	}
}

// literal asks in a function literal, which has captured the response.
func literal(url string) {
	for {
		resp, err := http.Get(url)
		if err != nil {
			return
		}
		done := func() bool {
			if resp.StatusCode == 503 {
				return false
			}
			return true
		}()
		if done {
			return
		}
	}
}

// filled looks at what the operation has put into a variable.
func filled(get func(into any) error) {
	var state struct{ done bool }
	for {
		if err := get(&state); err == nil && state.done {
			return
		}
	}
}
