// Package anew gives each attempt another identifier, and reads those of
// responses: no server can know a repetition by them.
package anew

import (
	"log"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

type repeating struct{ next http.RoundTripper }

func (t repeating) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 3 { // want `FB1030: retries every request, whatever its method`
		name(req)
		if resp, err = t.next.RoundTrip(req); err == nil {
			return resp, nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return nil, err
}

func name(req *http.Request) { req.Header.Set("X-Acme-Request-Id", strconv.Itoa(rand.Int())) }

func note(resp *http.Response) { log.Print(resp.Header.Get("X-Acme-Request-Id")) }
