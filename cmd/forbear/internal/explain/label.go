package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/faults"
	"github.com/forbear-go/forbear/internal/nearest"
)

// listed are the kinds that R-4 names as failures which no retry mends, although no
// type of error says so: a client that meets one takes it for unknown and stops, too.
// The situation says more than the error does.
var listed = map[string]string{
	"invalid_configuration":     "an invalid configuration",
	"token_permanently_revoked": "a token that is permanently revoked",
}

// edgeLabels are the labels of failures that are no errors of the network: what the
// operation has said itself, and what the edges have noticed.
var edgeLabels = map[string]forbear.Class{
	errtype.Marked:           forbear.ClassTransient,
	errtype.Terminal:         forbear.ClassTerminal,
	errtype.Resend:           forbear.ClassTransient,
	errtype.Silent:           forbear.ClassTimeout,
	errtype.InProgress:       forbear.ClassTransient,
	errtype.RequestBody:      forbear.ClassCanceled,
	"http2_connection_error": forbear.ClassTransient,
}

// kindsByLabel says which kind of error a label stands for, so that a label is judged
// by the classifier as the error behind it is. Of several kinds with one label the
// first will do: their class is the same.
var kindsByLabel = sync.OnceValue(func() map[string]string {
	req, err := (&Situation{}).request(&facts{})
	if err != nil {
		panic(err) // a GET without anything
	}
	kinds := map[string]string{}
	for _, kind := range faults.Kinds() {
		errs, err := faults.Build(kind)
		if err != nil || listed[kind] != "" {
			continue
		}
		label := httpretry.Classify(req.WithContext(faults.Context(kind)), nil, errs[0]).Type
		if kinds[label] == "" {
			kinds[label] = kind
		}
	}
	return kinds
})

// errorNames returns all that the protocol net has a name for, kinds and labels,
// sorted.
func errorNames() []string {
	names := slices.Concat(faults.Kinds(), slices.Collect(maps.Keys(kindsByLabel())), slices.Collect(maps.Keys(edgeLabels)))
	slices.Sort(names)
	return slices.Compact(names)
}

// readLabel takes the label of a status or of a gRPC code for the status or the code:
// people paste into --error what stands in the log. Other labels are left to the
// protocol net.
func (s *Situation) readLabel() error {
	if s.Status != 0 || s.Code != "" {
		return nil // what was given twice is refused later
	}
	if digits, ok := strings.CutPrefix(s.Error, "http_"); ok && len(digits) == 3 {
		if status, err := strconv.Atoi(digits); err == nil {
			s.Status, s.Error = status, ""
		}
	}
	if name, ok := strings.CutPrefix(s.Error, "grpc_"); ok {
		if _, known := grpcretry.ParseCode(name); known {
			s.Code, s.Error = name, ""
		}
	}
	if strings.HasPrefix(s.Error, "forrst_") {
		return fmt.Errorf("%s is the type of a Forrst response: give that response with --message", s.Error)
	}
	return nil
}

// unknownName is the error for a name that is not known: it names the nearest ones,
// or else where all of them are.
func unknownName(what, typed string, known []string) error {
	hint := nearest.Hint(typed, known, "")
	if hint == "" {
		if near := having(typed, known); len(near) > 0 {
			hint = ": did you mean " + strings.Join(near, " or ") + "?"
		} else {
			hint = ": forbear explain --help lists them"
		}
	}
	return fmt.Errorf("unknown %s %q%s", what, typed, hint)
}

// having returns the names, three at most, of which one word is the one that was
// typed: "refused" is a part of connection_refused.
func having(typed string, known []string) (names []string) {
	for _, name := range known {
		if len(names) < 3 && slices.Contains(strings.Split(strings.ToLower(name), "_"), strings.ToLower(typed)) {
			names = append(names, name)
		}
	}
	return names
}

// nameLines lists names in lines of the manual.
func nameLines(names []string) string {
	const width = 78
	var lines []string
	line := " "
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if len(line)+1+len(name) > width {
			lines = append(lines, line)
			line = " "
		}
		line += " " + name
	}
	return strings.Join(append(lines, line), "\n")
}
