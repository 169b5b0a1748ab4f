package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forbear-go/forbear"
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
			return p, fmt.Errorf("%s does not apply to protocol %s", f.name, s.Protocol)
		}
	}
	return p, nil
}
