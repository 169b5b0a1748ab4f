// Package rpc retries calls by their gRPC codes.
package rpc

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type client interface {
	Echo(ctx context.Context, in string) (string, error)
}

func wait() { time.Sleep(rand.N(time.Second)) }

func everyCode(ctx context.Context, c client) (err error) {
	for range 3 { // want `FB1035: retries rpc.client.Echo on gRPC code INVALID_ARGUMENT, PERMISSION_DENIED`
		_, err = c.Echo(ctx, "")
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Unavailable, codes.InvalidArgument, codes.PermissionDenied:
			wait()
		default:
			return err
		}
	}
	return err
}

var again = map[codes.Code]bool{codes.Unavailable: true, codes.Unimplemented: true, codes.NotFound: false}

func bySet(ctx context.Context, c client) (err error) {
	for range 3 { // want `FB1035: retries rpc.client.Echo on gRPC code UNIMPLEMENTED`
		if _, err = c.Echo(ctx, ""); err == nil {
			return nil
		}
		if !again[status.Code(err)] {
			return err
		}
		wait()
	}
	return err
}

func retryable(err error) bool { // want `FB1035: retryable calls NOT_FOUND, UNAUTHENTICATED retryable`
	s, ok := status.FromError(err)
	return ok && (s.Code() == codes.Unavailable || s.Code() == codes.Unauthenticated || s.Code() == codes.NotFound)
}

func byStatus(ctx context.Context, c client) (err error) {
	for range 3 { // want `FB1035: retries rpc.client.Echo on gRPC code INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED`
		_, err = c.Echo(ctx, "")
		if s, ok := status.FromError(err); !ok || s != nil && s.Code() != codes.OK {
			wait()
			continue
		}
		return nil
	}
	return err
}

const config = `{"methodConfig": [{"retryPolicy": {"maxAttempts": 3, "retryableStatusCodes": ["UNAVAILABLE", "PERMISSION_DENIED"]}}]}` // want `FB1035: the service config makes PERMISSION_DENIED retryable`

// Near misses.

func outages(ctx context.Context, c client) (err error) {
	for range 3 {
		_, err = c.Echo(ctx, "")
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
			wait()
		default:
			return err
		}
	}
	return err
}

var transient = map[codes.Code]bool{codes.Unavailable: true, codes.InvalidArgument: false}

func bySetOfOutages(ctx context.Context, c client) (err error) {
	for range 3 {
		if _, err = c.Echo(ctx, ""); err == nil {
			return nil
		}
		if !transient[status.Code(err)] {
			return err
		}
		wait()
	}
	return err
}

func retryableOutage(err error) bool {
	s, ok := status.FromError(err)
	return ok && s.Code() == codes.Unavailable
}

func asksForFinal(ctx context.Context, c client) (err error) {
	for range 3 {
		if _, err = c.Echo(ctx, ""); err == nil {
			return nil
		}
		switch status.Code(err) {
		case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unimplemented, codes.Unauthenticated:
			return err
		}
		wait()
	}
	return err
}

const outageConfig = `{"methodConfig": [{"retryPolicy": {"maxAttempts": 3, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
