// Package over chooses the method for another package that repeats it.
package over

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"under"
)

func pause() { time.Sleep(rand.N(time.Second)) }

func hire(c *under.Client) error { return c.Do("POST", "/people") } // want `FB1030: under.Client.Do retries this POST`
func fire(c *under.Client) error { return c.Do("DELETE", "/people/1") }

func promote(c *under.Client) error {
	for range 3 { // want `FB1030: retries POST by under.Request.Send`
		if err := c.Post("/promotions").Send(); err == nil {
			return nil
		}
		pause()
	}
	return errors.New("exhausted")
}

func look(c *under.Client) error {
	for range 3 {
		if err := c.Get("/promotions").Send(); err == nil {
			return nil
		}
		pause()
	}
	return errors.New("exhausted")
}

// found is a fault of SendAll. That it is shown there, only those know who share a
// module with it.
func found() error {
	req, err := http.NewRequest("POST", "http://example.com", nil)
	if err != nil {
		return err
	}
	_, err = under.SendAll(req) // want `FB1030: under.SendAll retries this POST`
	return err
}
