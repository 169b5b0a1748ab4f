package near

import (
	"net/http"
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
