package near

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// decision is made elsewhere, for each failure anew.
type decision struct {
	Retry bool
	Wait  time.Duration
}

func decide(err error) decision { return policy(err) }

var policy func(error) decision

// decided: the wait is a field of what is decided for each failure.
func decided(url string) error {
	for {
		resp, err := http.Get(url)
		if err == nil {
			return resp.Body.Close()
		}
		d := decide(err)
		if !d.Retry {
			return err
		}
		time.Sleep(d.Wait)
	}
}

type sequence struct{ made int }

func (s *sequence) Wait(d decision) error {
	time.Sleep(d.Wait)
	s.made++
	return nil
}

// handed over: a helper waits as a field of its parameter says.
func handedOver(url string) error {
	s := &sequence{}
	for {
		resp, err := http.Get(url)
		if err == nil {
			return resp.Body.Close()
		}
		d := decide(err)
		if !d.Retry {
			return err
		}
		if err := s.Wait(d); err != nil {
			return err
		}
	}
}

// A busyError says for how long the server is busy.
type busyError struct{ pause time.Duration }

func (*busyError) Error() string { return "busy" }

func ask(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		return &busyError{time.Duration(seconds) * time.Second}
	}
	return nil
}

// asked waits as what it finds in the error says.
func asked(url string) error {
	for {
		err := ask(url)
		if err == nil {
			return nil
		}
		var busy *busyError
		if !errors.As(err, &busy) {
			return err
		}
		time.Sleep(busy.pause)
	}
}

func askedByType(url string) error {
	for {
		err := ask(url)
		if err == nil {
			return nil
		}
		busy, ok := errors.AsType[*busyError](err)
		if !ok {
			return err
		}
		time.Sleep(busy.pause)
	}
}

func asserted(url string) error {
	for {
		err := ask(url)
		if err == nil {
			return nil
		}
		busy, ok := err.(*busyError)
		if !ok {
			return err
		}
		time.Sleep(busy.pause)
	}
}
