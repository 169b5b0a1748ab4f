package explain

import (
	"errors"
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/faults"
	"github.com/forbear-go/forbear/internal/nearest"
)

// classifyNet asks httpretry about a network error of the named kind. A kind
// appears in Go as several errors, by system and by layer; they must be of one
// class, or the verdict would depend on which of them a caller happens to meet. A
// disagreement is reported as an error, for it is a fault of the classifier and not
// of the question.
//
// The context is the one that such an error comes with, because a timeout means
// something else once the caller has given up.
func classifyNet(s *Situation, f *facts) (forbear.Failure, error) {
	if s.Error == "" {
		return forbear.Failure{}, errors.New("error is missing")
	}
	errs, err := faults.Build(s.Error)
	if err != nil {
		return forbear.Failure{}, fmt.Errorf("unknown error %q%s", s.Error, nearest.Hint(s.Error, faults.Kinds(), ""))
	}
	req, err := s.request(f)
	if err != nil {
		return forbear.Failure{}, err
	}
	req = req.WithContext(faults.Context(s.Error))
	failure := httpretry.Classify(req, nil, errs[0])
	for _, e := range errs[1:] {
		if other := httpretry.Classify(req, nil, e); other.Class != failure.Class {
			return failure, fmt.Errorf("%s is both %s and %s: the kind is ambiguous", s.Error, failure.Class, other.Class)
		}
	}
	return failure, nil
}
