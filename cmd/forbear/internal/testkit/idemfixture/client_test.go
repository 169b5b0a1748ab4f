package idemfixture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/policyfile"
)

// clientCall makes a request through forbear's own client, with its retries,
// and through a proxy that loses some of the attempts.
func (r *runner) clientCall(s *step) {
	t := r.t
	t.Helper()
	if s.Request == nil {
		t.Fatal("client_call without a request")
	}
	p, err := readPolicy(s.Policy)
	if err != nil {
		t.Fatalf("policy %s: %v", s.Policy, err)
	}
	if s.AttemptTimeoutMS > 0 {
		p.PerAttempt = time.Duration(s.AttemptTimeoutMS) * time.Millisecond
	}
	retryer, err := forbear.New("fixture", p, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	faults, err := readFaults(s.Proxy)
	if err != nil {
		t.Fatalf("proxy %s: %v", s.Proxy, err)
	}
	proxy := httptest.NewServer(&lossy{target: r.at(s.Request.Instance), faults: faults})
	defer proxy.Close()
	inner := &http.Transport{}
	defer inner.CloseIdleConnections()
	res := r.through(httpretry.NewTransport(inner, retryer), proxy.URL, *s.Request)
	res.maxMS, res.instance = s.Request.MaxMS, s.Request.Instance
	r.results[s.Request.ID] = append(r.results[s.Request.ID], res)
	r.ledger.raise(r.ledger.events, "done:"+s.Request.ID)
}

// readPolicy reads the name of a profile, or what a policy file says of one
// dependency.
func readPolicy(v json.RawMessage) (forbear.Policy, error) {
	var name string
	switch {
	case len(v) == 0:
		return forbear.Policy{}, nil
	case json.Unmarshal(v, &name) == nil:
		return forbear.Profile(name)
	}
	return policyfile.ParsePolicy("policy", v, forbear.Policy{})
}

// fault says what becomes of an attempt, and of which.
type fault struct {
	kind     string
	attempts []int // counted from 1
	wait     time.Duration
}

var faultKinds = []string{
	"drop_request",  // cut before the server sees it
	"drop_response", // cut after the server has answered
	"cut_response",  // cut in the middle of the answer
}

// readFaults reads the name of a fault, of which the first attempt then dies,
// or faults with the number of first attempts or a list of attempts. delay_ms
// makes the first attempt slow.
func readFaults(v json.RawMessage) (list []fault, err error) {
	if len(v) == 0 {
		return nil, nil
	}
	all := map[string]json.RawMessage{}
	var name string
	if json.Unmarshal(v, &name) == nil {
		all[name] = json.RawMessage("1")
	} else if err := json.Unmarshal(v, &all); err != nil {
		return nil, err
	}
	for kind, v := range all {
		f := fault{kind: kind}
		var n int
		switch {
		case kind == "delay_ms" && json.Unmarshal(v, &n) == nil:
			f.wait, f.attempts = time.Duration(n)*time.Millisecond, []int{1}
		case !slices.Contains(faultKinds, kind):
			return nil, fmt.Errorf("fault %q is not understood", kind)
		case json.Unmarshal(v, &n) == nil:
			for i := range n {
				f.attempts = append(f.attempts, i+1)
			}
		default:
			if err := json.Unmarshal(v, &f.attempts); err != nil {
				return nil, err
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// lossy is a proxy that does to attempts what a network does.
type lossy struct {
	target string
	faults []fault
	n      atomic.Int64
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(l.n.Add(1))
	kinds := map[string]bool{}
	for _, f := range l.faults {
		if slices.Contains(f.attempts, n) {
			kinds[f.kind] = true
			time.Sleep(f.wait)
		}
	}
	if kinds["drop_request"] {
		panic(http.ErrAbortHandler)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out, err := http.NewRequest(r.Method, l.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header = r.Header.Clone()
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(out)
	if err != nil || kinds["drop_response"] {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	maps.Copy(w.Header(), resp.Header)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	w.WriteHeader(resp.StatusCode)
	if kinds["cut_response"] {
		_, _ = w.Write(text[:len(text)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(text)
}
