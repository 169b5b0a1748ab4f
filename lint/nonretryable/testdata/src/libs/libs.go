// Package libs names codes to libraries that retry.
package libs

import (
	"net/http"

	"github.com/googleapis/gax-go/v2"
	grpc_retry "github.com/grpc-ecosystem/go-grpc-middleware/retry"
	"google.golang.org/grpc/codes"
)

func finals() {
	_ = gax.OnCodes([]codes.Code{codes.Unavailable, codes.InvalidArgument}, gax.Backoff{})   // want `FB1035: gax makes INVALID_ARGUMENT retryable`
	_ = gax.OnHTTPCodes(gax.Backoff{}, http.StatusServiceUnavailable, http.StatusBadRequest) // want `FB1035: gax makes 400 retryable`
	_ = grpc_retry.WithCodes(codes.Unavailable, codes.PermissionDenied)                      // want `FB1035: grpc_retry.WithCodes makes PERMISSION_DENIED retryable`
}

func outages() {
	_ = gax.OnCodes([]codes.Code{codes.Unavailable, codes.Aborted}, gax.Backoff{})
	_ = gax.OnHTTPCodes(gax.Backoff{}, http.StatusServiceUnavailable, http.StatusTooManyRequests)
	_ = grpc_retry.WithCodes(codes.Unavailable, codes.ResourceExhausted)
}
