package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forrst"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/faults"
)

// protocol turns the situations of one protocol into failures. It holds no rules of
// its own: whether a status or code may be retried is the classifying package's
// decision alone.
type protocol struct {
	// fields are those of the situation that only some protocols have, and
	// that this one reads.
	fields []string
	// classify reads the failure off the situation. It may complete the state
	// and add notes.
	classify func(*Situation, *facts) (forbear.Failure, error)
}

// protocols is where a protocol is plugged in. Each asks the package that classifies the
// real thing. Its keys are part of the JSON format.
var protocols = map[string]protocol{
	"http":   {[]string{"status", "headers"}, classifyHTTP},
	"net":    {[]string{"error"}, classifyNet},
	"grpc":   {[]string{"code", "trailers"}, classifyGRPC},
	"forrst": {[]string{"message", "phase", "status", "headers"}, classifyForrst},
}

// protocol returns the situation's protocol. A fact that it would ignore is an
// error: a verdict must not pass over what was given. The fields are listed by hand
// and not by reflection, because the zero value of each means "not given" in its own
// way.
func (s *Situation) protocol() (protocol, error) {
	p, ok := protocols[s.Protocol]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(protocols)), ", ")
		if s.Protocol == "" {
			return p, fmt.Errorf("protocol is missing: want one of %s", known)
		}
		return p, fmt.Errorf("unknown protocol %q: want one of %s", s.Protocol, known)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"status", s.Status != 0},
		{"headers", s.Headers != nil},
		{"code", s.Code != ""},
		{"trailers", s.Trailers != nil},
		{"error", s.Error != ""},
		{"message", s.Message != nil},
		{"phase", s.Phase != 0},
	} {
		if f.set && !slices.Contains(p.fields, f.name) {
			return p, fmt.Errorf("%s does not go with protocol %s", f.name, s.Protocol)
		}
	}
	return p, nil
}

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
	return httpretry.ClassifyBy(&f.policy, req, resp, nil, f.now), nil
}

// request builds the request that failed, and puts into the state what R-6 wants
// to know of it: whether the method needs a key. Its URL is never asked for. The
// host is under .test, which never resolves (RFC 6761), should a later change send
// it by mistake. Methods may be typed in any case; on the wire they are in capitals.
func (s *Situation) request(f *facts) (*http.Request, error) {
	req, err := http.NewRequest(strings.ToUpper(cmp.Or(s.Method, http.MethodGet)), "http://dependency.test/", nil)
	if err != nil {
		return nil, fmt.Errorf("method %q is no HTTP method", s.Method)
	}
	if s.IdempotencyKey != "" {
		req.Header.Set(httpretry.HeaderKey, s.IdempotencyKey)
	}
	f.state.NeedsKey = httpretry.NeedsKey(req.Method)
	return req, nil
}

// classifyNet asks httpretry about a network error of the named kind. A kind
// appears in Go as several errors, by system and by layer; they must be of one
// class, or the verdict would depend on which of them a caller happens to meet. A
// disagreement is reported as an error, for it is a fault of the classifier and not
// of the question.
//
// The context is the one that such an error comes with, because a timeout means
// something else once the caller has given up. A label of logs and metrics stands for
// the kind that has it.
func classifyNet(s *Situation, f *facts) (forbear.Failure, error) {
	if s.Error == "" {
		return forbear.Failure{}, errors.New("error is missing")
	}
	req, err := s.request(f)
	if err != nil {
		return forbear.Failure{}, err
	}
	if class, ok := edgeLabels[s.Error]; ok {
		return forbear.Failure{Class: class, Type: s.Error}, nil
	}
	kind := s.Error
	errs, err := faults.Build(kind)
	if err != nil {
		kind = kindsByLabel()[s.Error]
		if errs, err = faults.Build(kind); err != nil {
			return forbear.Failure{}, unknownName("error", s.Error, errorNames())
		}
	}
	req = req.WithContext(faults.Context(kind))
	failure := httpretry.Classify(req, nil, errs[0])
	for _, e := range errs[1:] {
		if other := httpretry.Classify(req, nil, e); other.Class != failure.Class {
			return failure, fmt.Errorf("%s is both %s and %s: the kind is ambiguous", s.Error, failure.Class, other.Class)
		}
	}
	if what := listed[kind]; what != "" {
		failure.Class = forbear.ClassTerminal
		f.note("R-4 lists %s among the failures that are not retried; the log has it as %s", what, failure.Type)
	}
	return failure, nil
}

// classifyGRPC asks grpcretry about a status with the situation's code and
// trailers. The method is taken to be one that its owner has declared safe to
// repeat, unless the situation names it "keyed": then it needs a key. Trailers
// decide only through grpcretry, which reads pushback by gRFC A6. No trailers at all
// is nil, as a connection that broke gives none.
func classifyGRPC(s *Situation, f *facts) (forbear.Failure, error) {
	code, err := grpcCode(s.Code)
	if err != nil {
		return forbear.Failure{}, err
	}
	switch strings.ToLower(s.Method) {
	case "", "unary", "server_stream", "idempotent":
	case "keyed":
		f.state.NeedsKey = true
	case "client_stream", "bidi_stream":
		f.state.Unreplayable = true
		f.note("what a client has streamed cannot be sent again")
	default:
		return forbear.Failure{}, fmt.Errorf("method %q is unknown for grpc: want unary, server_stream, client_stream, bidi_stream or keyed", s.Method)
	}
	trailer := metadata.MD{}
	for _, t := range s.Trailers {
		trailer.Append(t[0], t[1])
	}
	if len(trailer) == 0 {
		trailer = nil
	}
	failure := grpcretry.Classify(context.Background(), status.Error(code, ""), trailer)
	if failure.Hint.Stop {
		f.note("the server's %s says: do not retry (gRFC A6)", grpcretry.TrailerPushback)
	}
	return failure, nil
}

// grpcCode reads a code by name, label or number, as logs have each. A near miss is
// named in the error: CANCELED and CANCELLED are both in use.
func grpcCode(name string) (codes.Code, error) {
	if name == "" {
		return 0, errors.New("code is missing")
	}
	upper := strings.TrimPrefix(strings.ToUpper(name), "GRPC_")
	if c, ok := grpcretry.ParseCode(upper); ok {
		return c, nil
	}
	if n, err := strconv.ParseUint(name, 10, 8); err == nil && int(n) < len(grpcretry.CodeNames()) {
		return codes.Code(n), nil
	}
	return 0, unknownName("code", name, grpcretry.CodeNames())
}

// classifyForrst asks forrst about a response envelope. A message that is a
// JSON string is the raw body of a response that may be no envelope at all.
// Forrst calls need an idempotency key, unless the method is "idempotent". The phase
// decides how much of the extension counts, as it does in a client during the
// migration; 0 means phase 1.
//
// The HTTP method may be POST or missing, since Forrst knows no other; "idempotent"
// stands for a method that its server declares safe to repeat.
func classifyForrst(s *Situation, f *facts) (forbear.Failure, error) {
	if s.Message == nil {
		return forbear.Failure{}, errors.New("message is missing")
	}
	if s.Phase < 0 || s.Phase > int(forrst.Phase3) {
		return forbear.Failure{}, fmt.Errorf("phase %d is not 1, 2 or 3", s.Phase)
	}
	x := forrst.Message{Status: s.Status, Header: http.Header{}, Body: s.Message, Now: f.now}
	var raw string
	if json.Unmarshal(s.Message, &raw) == nil {
		x.Body = []byte(raw)
	}
	for _, h := range s.Headers {
		x.Header.Add(h[0], h[1])
	}
	switch strings.ToUpper(s.Method) {
	case "", http.MethodPost:
		f.state.NeedsKey = true
	case "IDEMPOTENT":
	default:
		return forbear.Failure{}, fmt.Errorf("method %q is unknown for forrst: want POST or idempotent", s.Method)
	}
	a := max(forrst.Phase(s.Phase), forrst.Phase1).Advise(x)
	f.noteAdvice(a)
	return a.Failure, nil
}

// noteAdvice adds what the message said, and whether the server or a default said
// it: the author of a server wants to see what its extension came to. Notes come in
// the order in which a reader asks: what happened, by whose word, and what the
// server should change.
func (f *facts) noteAdvice(a forrst.Advice) {
	switch {
	case a.Outcome == forrst.Queued:
		f.note("the server has queued the call: sending it again would do it twice")
	case a.Outcome == forrst.Malformed:
		f.note("the response breaks the protocol")
	case a.Source != forrst.FromNothing && a.Strategy != "":
		f.note("%s strategy, by %s", a.Strategy, a.Source)
	case a.Source != forrst.FromNothing:
		f.note("judged by %s", a.Source)
	}
	if a.Deprecated {
		f.note("the retryable field is deprecated: the server should send the extension %s", forrst.URN)
	}
	h := a.Failure.Hint
	if h.MaxRetries > 0 {
		f.note("at most %d retries by the server or the default for the code", h.MaxRetries)
	}
	if h.LongerDeadline {
		f.note("the retry should have a longer deadline")
	}
}
