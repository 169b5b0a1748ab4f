package status

import (
	"slices"
	"strconv"
)

// Response is one that settings and findings name: an HTTP status or a gRPC code.
type Response struct {
	Name   string // "404", "NOT_FOUND": as settings and findings write it
	Number int64
	Final  bool // the standard forbids another attempt
}

// The first of each list is the success. Behind the final ones stand those that
// may be retried: enough of them to tell a loop that looks at the status from
// one that retries whatever comes.
var (
	statuses = responses([]int64{400, 401, 403, 404, 409, 422}, 200, 429, 503)
	codes    = []Response{
		{"OK", 0, false},
		{"INVALID_ARGUMENT", 3, true},
		{"NOT_FOUND", 5, true},
		{"PERMISSION_DENIED", 7, true},
		{"UNIMPLEMENTED", 12, true},
		{"UNAUTHENTICATED", 16, true},
		{"UNAVAILABLE", 14, false},
	}
)

// responses lists statuses: the success, the final ones, the others.
func responses(final []int64, success int64, others ...int64) (list []Response) {
	for _, n := range slices.Concat([]int64{success}, final, others) {
		list = append(list, Response{strconv.FormatInt(n, 10), n, slices.Contains(final, n)})
	}
	return list
}

// Responses lists the gRPC codes or the HTTP statuses that are told apart, the
// success first. It must not be changed.
func Responses(grpc bool) []Response {
	if grpc {
		return codes
	}
	return statuses
}

// Names lists the names of all failures that are told apart. Only these can be
// retryable or final by the settings.
func Names() (names []string) {
	for _, r := range slices.Concat(statuses[1:], codes[1:]) {
		names = append(names, r.Name)
	}
	return names
}

// Find returns the failure of a number; ok is false for any other.
func Find(number int64, grpc bool) (r Response, ok bool) {
	return find(grpc, func(r Response) bool { return r.Number == number })
}

// FindCode returns the gRPC failure of a name, such as "NOT_FOUND".
func FindCode(name string) (r Response, ok bool) {
	return find(true, func(r Response) bool { return r.Name == name })
}

// find returns the failure of a list that is looked for.
// The list is short, so that a map is not worth its code.
func find(grpc bool, is func(Response) bool) (Response, bool) {
	list := Responses(grpc)[1:]
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return Response{}, false
}
