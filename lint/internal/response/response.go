// Package response names the responses that the linter tells apart: HTTP statuses and
// gRPC codes.
package response

import (
	"slices"
	"strconv"
)

// Response is one that settings and findings name: an HTTP status or a gRPC code.
type Response struct {
	Name   string // "404", "NOT_FOUND": as settings and findings write it
	Number int64
	Final  bool // the standard forbids another attempt
	GRPC   bool
}

// The responses that are told apart. Behind the final ones stand those that may be
// retried.
var (
	statuses = responses([]int64{400, 401, 403, 404, 409, 422}, 429, 503)
	codes    = []Response{
		{"INVALID_ARGUMENT", 3, true, true},
		{"NOT_FOUND", 5, true, true},
		{"PERMISSION_DENIED", 7, true, true},
		{"UNIMPLEMENTED", 12, true, true},
		{"UNAUTHENTICATED", 16, true, true},
		{"UNAVAILABLE", 14, false, true},
	}
)

func responses(final []int64, others ...int64) (list []Response) {
	for _, n := range slices.Concat(final, others) {
		list = append(list, Response{Name: strconv.FormatInt(n, 10), Number: n, Final: slices.Contains(final, n)})
	}
	return list
}

// All lists the gRPC codes or the HTTP statuses that are told apart. It must
// not be changed.
func All(grpc bool) []Response {
	if grpc {
		return codes
	}
	return statuses
}

// Find returns the response of a number; ok is false for any other.
func Find(number int64, grpc bool) (Response, bool) {
	for _, r := range All(grpc) {
		if r.Number == number {
			return r, true
		}
	}
	return Response{}, false
}

// FindCode returns the gRPC code of a name, such as "NOT_FOUND".
func FindCode(name string) (Response, bool) {
	for _, r := range codes {
		if r.Name == name {
			return r, true
		}
	}
	return Response{}, false
}

// Names lists the names of all responses that are told apart. Only these can be
// retryable or final by the settings.
func Names() (names []string) {
	for _, r := range slices.Concat(statuses, codes) {
		names = append(names, r.Name)
	}
	return names
}
