package explain

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// classifyHTTP asks httpretry about a response with the situation's status and
// headers. The status may be one that no standard has: an upstream may send it. The
// time is the situation's, since Retry-After may be a date and the verdict must not
// change while it is read.
func classifyHTTP(s *Situation, f *facts) (forbear.Failure, error) {
	if s.Status == 0 {
		return forbear.Failure{}, errors.New("status is missing")
	}
	if s.Status < 100 || s.Status > 999 {
		return forbear.Failure{}, fmt.Errorf("status %d is not in 100-999", s.Status)
	}
	req, err := s.request(f)
	if err != nil {
		return forbear.Failure{}, err
	}
	resp := &http.Response{
		StatusCode: s.Status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{},
		Body:       http.NoBody,
		Request:    req,
	}
	for _, h := range s.Headers {
		resp.Header.Add(h[0], h[1])
	}
	if f.policy.Kind == forbear.Webhook && s.Status < 400 && s.Status/100 != 2 {
		f.note("a delivery succeeds with 2xx only, and does not follow redirects")
	}
	return httpretry.ClassifyBy(&f.policy, req, resp, nil, f.now), nil
}

// request builds the request that failed, and puts into the state what R-6 wants
// to know of it: whether the method needs a key. Its URL is never asked for. The
// host is under .test, which never resolves (RFC 6761), should a later change send
// it by mistake. Methods may be typed in any case; on the wire they are in capitals.
func (s *Situation) request(f *facts) (*http.Request, error) {
	req, err := http.NewRequest(strings.ToUpper(cmp.Or(s.Method, http.MethodGet)), "http://dependency.test/", nil)
	if err != nil {
		return nil, fmt.Errorf("method %q is not an HTTP method", s.Method)
	}
	if s.IdempotencyKey != "" {
		req.Header.Set(httpretry.HeaderKey, s.IdempotencyKey)
	}
	f.state.NeedsKey = httpretry.NeedsKey(req.Method)
	return req, nil
}
