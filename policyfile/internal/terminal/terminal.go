// Package terminal says which failures R-4 leaves to be retried. The classes are those of
// the library, so that check and export cannot disagree with what the library does.
package terminal

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/httpretry"
)

// Verdict is what R-4 says about a retry. The zero value is Retryable.
type Verdict uint8

const (
	// Retryable failures are retried.
	Retryable Verdict = iota
	// Unlisted failures stand in neither of R-4's tables. They count as permanent.
	Unlisted
	// Forbidden failures must not be retried.
	Forbidden
)

// R-4's table of what must not be retried.
var (
	statuses = []int{400, 401, 403, 404, 409, 422}
	codes    = []string{"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED"}
)

// Labels are the error types of the forbidden failures, as a policy file writes them.
func Labels() (labels []string) {
	for _, status := range statuses {
		labels = append(labels, httpretry.Classify(request, response(status), nil).Type)
	}
	for _, code := range codes {
		labels = append(labels, "grpc_"+code)
	}
	return labels
}

// Status judges a status of HTTP.
func Status(status int) Verdict {
	return verdict(StatusClass(status), slices.Contains(statuses, status))
}

// Code judges a gRPC code by its name. An unknown name is unlisted.
func Code(name string) Verdict { return verdict(CodeClass(name), slices.Contains(codes, name)) }

func verdict(class forbear.Class, forbidden bool) Verdict {
	switch {
	case class.Retryable():
		return Retryable
	case forbidden:
		return Forbidden
	}
	return Unlisted
}

// StatusClass is the class of a status without a policy.
func StatusClass(status int) forbear.Class {
	return httpretry.Classify(request, response(status), nil).Class
}

// CodeClass is the class of a gRPC code without a policy.
func CodeClass(name string) forbear.Class {
	code, _ := grpccode.Parse(name)
	return grpccode.Class(code)
}

// request is a plain request: only its own key could make a difference.
var request = &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "localhost"}}

func response(status int) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Request: request}
}
