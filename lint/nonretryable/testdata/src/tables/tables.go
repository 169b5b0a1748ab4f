// Package tables holds predicates that ask tables of statuses, and functions that
// only look like predicates.
package tables

import "net/http"

var (
	again  = map[int]bool{400: true, 503: true}
	empty  = map[int]bool{}
	filled = map[int]bool{404: true}
	// Final may be replaced by whoever uses the package.
	Final = map[int]bool{404: true}
)

func init() {
	for _, code := range []int{400, 401, 403, 404, 409, 422} {
		empty[code] = true
		filled[code] = true
	}
}

func shouldRetry(code int) bool { return again[code] } // want `FB1035: shouldRetry calls 400 retryable`

func retryUnlessFilled(code int) bool { return code >= 400 && !filled[code] }

func retryUnlessEmpty(code int) bool { return code >= 400 && !empty[code] }

func retryUnlessFinal(code int) bool { return code >= 400 && !Final[code] }

// retrieve is no retry.
func retrieve(code int) bool { return code >= 400 }

// retrySend sends, and says how that went.
func retrySend(c *http.Client, url string) bool {
	resp, err := c.Get(url)
	return err != nil || resp.StatusCode >= 400
}

func retryReply(resp *http.Response) bool { return resp.StatusCode >= 400 } // want `FB1035: retryReply calls 400`

// retryWhile calls what it is given for as long as that says so.
func retryWhile(again func() bool) {
	for again() {
	}
}

// retryLater keeps what it is given.
func retryLater(again func() bool) func() bool { return again }

func retryPolicy(func(*http.Response) bool) {}

func handsOver(c *http.Client, url string) {
	retryWhile(func() bool {
		resp, err := c.Get(url)
		return err == nil && resp.StatusCode >= 400
	})
	retryLater(func() bool {
		resp, err := c.Get(url)
		return err == nil && resp.StatusCode >= 400
	})
	retryPolicy(func(resp *http.Response) bool { return resp.StatusCode >= 400 }) // want `FB1035: retryPolicy calls 400`
}

// What the variables hold is known, of whichever kind their interfaces may be.
type Checker interface{ Fair(code int) bool }

type checker interface{ fair(code int) bool }

type outage struct{}

func (outage) Fair(code int) bool { return code >= 400 }
func (outage) fair(code int) bool { return code >= 400 }

var (
	public  Checker = outage{}
	private checker = outage{}
)

func retryPublic(code int) bool { return public.Fair(code) } // want `FB1035: retryPublic calls 400`

func retryPrivate(code int) bool { return private.fair(code) } // want `FB1035: retryPrivate calls 400`
