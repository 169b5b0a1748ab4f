package faults_test

import (
	"context"
	"testing"

	"github.com/forbear-go/forbear/internal/faults"
)

func TestEveryKindBuildsErrors(t *testing.T) {
	for _, kind := range faults.Kinds() {
		errs, err := faults.Build(kind)
		if err != nil || len(errs) == 0 {
			t.Errorf("%s: %d errors, %v", kind, len(errs), err)
		}
		for i, e := range errs {
			if e == nil || e.Error() == "" {
				t.Errorf("%s: error %d is empty", kind, i)
			}
		}
	}
}

func TestUnknownKindIsAnError(t *testing.T) {
	if _, err := faults.Build("gremlins"); err == nil {
		t.Error("no error")
	}
}

func TestContext(t *testing.T) {
	for kind, want := range map[string]error{
		"caller_deadline":      context.DeadlineExceeded,
		"caller_cancelled":     context.Canceled,
		"per_attempt_deadline": nil,
	} {
		if got := faults.Context(kind).Err(); got != want {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
}
