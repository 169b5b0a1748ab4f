package explain

import (
	"errors"
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/faults"
)

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
