package a

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

func hasStatus(resp *http.Response, codes ...int) bool {
	return resp != nil && slices.Contains(codes, resp.StatusCode)
}

// byCodes repeats what its caller lists, and what fails.
func byCodes(c *http.Client, req *http.Request, codes ...int) (resp *http.Response, err error) {
	for attempt := 0; attempt < 5; attempt++ { // want `FB1002: retries http.Client.Do on failure with a growing wait that has no jitter`
		resp, err = c.Do(req)
		if err == nil && !hasStatus(resp, codes...) {
			return resp, nil
		}
		if err != nil {
			println(err.Error())
		}
		time.Sleep(time.Second << attempt)
	}
	return resp, err
}

type page struct{ state string }

func pending(p page, of ...string) bool { return slices.Contains(of, p.state) }

// byState asks what it has got for its state, as a poller does.
func byState(get func(string) (page, error), url string, of ...string) (p page, err error) {
	for attempt := 0; attempt < 5; attempt++ {
		p, err = get(url)
		if err == nil && !pending(p, of...) {
			return p, nil
		}
		time.Sleep(time.Second << attempt)
	}
	return p, err
}

// serverOrGrowing waits as the server says, and longer each time where it says
// nothing.
func serverOrGrowing(c *http.Client, req *http.Request) (resp *http.Response, err error) {
	for attempt := 0; attempt < 5; attempt++ { // want `FB1002: retries http.Client.Do on failure with a growing wait that has no jitter`
		resp, err = c.Do(req)
		if err == nil && !hasStatus(resp, 503) {
			return resp, nil
		}
		if !pausedFor(resp) {
			time.Sleep(time.Second << attempt)
		}
	}
	return resp, err
}

// serverAlone waits as the server says, or not at all.
func serverAlone(c *http.Client, req *http.Request) (resp *http.Response, err error) {
	for attempt := 0; attempt < 5; attempt++ {
		resp, err = c.Do(req)
		if err == nil && !hasStatus(resp, 503) {
			return resp, nil
		}
		pausedFor(resp)
	}
	return resp, err
}

func pausedFor(resp *http.Response) bool {
	var d time.Duration
	if resp != nil {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		d = time.Duration(seconds) * time.Second
	}
	if d > 0 {
		time.Sleep(d)
		return true
	}
	return false
}
