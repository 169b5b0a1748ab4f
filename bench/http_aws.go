package bench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// awsHTTP returns one request through the SDK's stack with its retry
// middleware and nothing of a service: no signing, no serialization of its own.
func awsHTTP(ctx context.Context, client *http.Client, method string) func() error {
	u, _ := url.Parse(target)
	stack := middleware.NewStack("bench", smithyhttp.NewStackRequest)
	attempts := awsretry.NewAttemptMiddleware(awsStandard(ratelimit.None), smithyhttp.RequestCloner)
	for _, err := range []error{
		stack.Serialize.Add(middleware.SerializeMiddlewareFunc("request", fill(method, u)), middleware.After),
		stack.Finalize.Add(attempts, middleware.After),
		stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("status", status), middleware.After),
	} {
		if err != nil {
			return func() error { return err }
		}
	}
	handler := middleware.DecorateHandler(smithyhttp.NewClientHandlerWithOptions(client), stack)
	return func() error {
		out, _, err := handler.Handle(ctx, nil)
		if err != nil {
			return err
		}
		return finish(out.(*smithyhttp.Response).Response, nil)
	}
}

// fill makes the request what the other peers send.
func fill(method string, u *url.URL) func(context.Context, middleware.SerializeInput, middleware.SerializeHandler) (middleware.SerializeOutput, middleware.Metadata, error) {
	return func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (out middleware.SerializeOutput, md middleware.Metadata, err error) {
		req := in.Request.(*smithyhttp.Request)
		req.Method, req.URL.Scheme, req.URL.Host, req.URL.Path = method, u.Scheme, u.Host, u.Path
		if method == http.MethodPut {
			if req, err = req.SetStream(bytes.NewReader(payload)); err != nil {
				return out, md, err
			}
			in.Request = req
		}
		return next.HandleSerialize(ctx, in)
	}
}

// status turns a response that is not good into an error, which is what the
// SDK's services do and its retryer reads.
func status(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (out middleware.DeserializeOutput, md middleware.Metadata, err error) {
	out, md, err = next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, md, err
	}
	resp := out.RawResponse.(*smithyhttp.Response)
	if resp.StatusCode >= 300 {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return out, md, &smithyhttp.ResponseError{Response: resp, Err: errFlaky}
	}
	out.Result = resp
	return out, md, nil
}
