package grpcretry

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/forbear-go/forbear/edge/grpcwire"
)

// ErrorDomain is the domain of the google.rpc.ErrorInfo that names why a call
// was not let in: KEY_MISSING, KEY_INVALID, KEY_REUSED, UNAUTHENTICATED,
// IN_PROGRESS, OUTCOME_UNKNOWN, NOT_REPLAYABLE, KEY_ON_STREAM or STORE_UNAVAILABLE.
const ErrorDomain = grpcwire.IdempotencyDomain

// headerFresh marks the handler's own response on its way through the middleware.
// It is not among the headers that are stored.
const headerFresh = "X-Forbear-Fresh"

// A call's response is stored as HTTP would have it: the status that belongs to
// the code, and as body the reply or, for an error, its google.rpc.Status; the
// media type names the message.
const mediaType = "application/x-protobuf"

// encoded is a response as it is stored.
type encoded struct {
	code        codes.Code
	contentType string
	body        []byte
}

// encode returns what is stored of a call, so that a duplicate gets the same code
// and the same message.
func encode(reply any, err error) encoded {
	if err != nil {
		s := statusOf(err)
		return encodeMessage(s.Code(), s.Proto())
	}
	if m, ok := reply.(proto.Message); ok {
		return encodeMessage(codes.OK, m)
	}
	return encoded{} // of another codec: duplicates get an empty reply
}

// encodeMessage names the type beside the bytes: a duplicate may reach a newer
// server, which must know what to read them as.
func encodeMessage(c codes.Code, m proto.Message) encoded {
	name := string(m.ProtoReflect().Descriptor().FullName())
	body, err := proto.Marshal(m)
	if err != nil {
		body = nil // gRPC will fail to send it, too
	}
	return encoded{c, mime.FormatMediaType(mediaType, map[string]string{"messagetype": name}), body}
}

// statusOf returns the status that gRPC's server derives from a handler's error.
func statusOf(err error) *status.Status {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	if s.Code() == codes.OK {
		s = status.New(codes.Unknown, err.Error())
	}
	return s
}

// stored returns what a call gets that was not run: a stored response, or why
// there is none.
func (a *response) stored(ctx context.Context, method string) (any, error) {
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		return nil, a.problem()
	}
	_ = grpc.SetHeader(ctx, metadata.Join(metadataOf(a.header[storedHeader]), metadata.Pairs(HeaderReplayed, "true")))
	_ = grpc.SetTrailer(ctx, metadataOf(a.header[storedTrailer]))
	kind, params, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	if kind != mediaType { // an operator's word: a status, and perhaps a text
		if a.status >= 400 {
			return nil, status.Error(codeOf(a.status), a.body.String())
		}
		return empty(method)
	}
	if a.status >= 400 {
		p := &spb.Status{}
		if err := proto.Unmarshal(a.body.Bytes(), p); err != nil || p.GetCode() == 0 {
			return nil, status.Error(codes.DataLoss, "idempotency: the stored error cannot be read")
		}
		return nil, status.ErrorProto(p)
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(params["messagetype"]))
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "idempotency: the stored reply is of an unknown type: %v", err)
	}
	m := t.New().Interface()
	if err := proto.Unmarshal(a.body.Bytes(), m); err != nil {
		return nil, status.Error(codes.DataLoss, "idempotency: the stored reply cannot be read")
	}
	return m, nil
}

// empty returns the method's reply without anything in it: the work is known to
// be done, and its response is not.
func empty(method string) (any, error) {
	if m := methodOf(method); m != nil {
		if t, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName()); err == nil {
			return t.New().Interface(), nil
		}
	}
	return nil, refuse(codes.FailedPrecondition, "NOT_REPLAYABLE", "an earlier attempt succeeded; its response is not known", 0)
}

// problem turns the middleware's own problem document into a status.
func (a *response) problem() error {
	var p struct{ Type, Detail string }
	if err := json.Unmarshal(a.body.Bytes(), &p); err != nil {
		return status.Error(codes.Internal, "idempotency: the problem cannot be read")
	}
	name := p.Type[strings.LastIndexByte(p.Type, '/')+1:]
	var wait time.Duration
	if s, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
		wait = time.Duration(s) * time.Second
	}
	code, ok := problems[name]
	if !ok {
		code = codeOf(a.status)
	}
	return refuse(code, strings.ToUpper(strings.ReplaceAll(name, "-", "_")), p.Detail, wait)
}

// problems are the codes for the middleware's problem types. Only ABORTED and
// UNAVAILABLE may be retried.
var problems = map[string]codes.Code{
	"key-missing":        codes.InvalidArgument,
	"key-invalid":        codes.InvalidArgument,
	"key-reused":         codes.InvalidArgument,
	"request-too-large":  codes.InvalidArgument,
	"request-unreadable": codes.InvalidArgument,
	"unauthenticated":    codes.Unauthenticated,
	"in-progress":        codes.Aborted,
	"outcome-unknown":    codes.FailedPrecondition,
	"not-replayable":     codes.FailedPrecondition,
	"store-unavailable":  codes.Unavailable,
}

// refuse returns the status of a call that was not let in, with the details that
// a client decides by: the reason, and the wait where it may come again.
func refuse(code codes.Code, reason, detail string, wait time.Duration) error {
	s := status.New(code, "idempotency: "+detail)
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: ErrorDomain}}
	if wait > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	if with, err := s.WithDetails(details...); err == nil {
		s = with
	}
	return s.Err()
}

// httpStatus is the status that google.rpc.Code gives to a code.
func httpStatus(c codes.Code) int {
	if s, ok := httpStatuses[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// httpStatuses are those that google.rpc.Code documents for its codes. The
// middleware and the operators' tools see a stored call by them.
var httpStatuses = map[codes.Code]int{
	codes.OK:                 http.StatusOK,
	codes.Canceled:           499,
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
	codes.NotFound:           http.StatusNotFound,
	codes.AlreadyExists:      http.StatusConflict,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.FailedPrecondition: http.StatusBadRequest,
	codes.Aborted:            http.StatusConflict,
	codes.OutOfRange:         http.StatusBadRequest,
	codes.Unimplemented:      http.StatusNotImplemented,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.Unauthenticated:    http.StatusUnauthorized,
}

// codeOf is the code that an operator means who resolves a key with a status.
func codeOf(httpStatus int) codes.Code {
	switch httpStatus {
	case http.StatusBadRequest:
		return codes.InvalidArgument
	case http.StatusConflict:
		return codes.AlreadyExists
	}
	for code, s := range httpStatuses {
		if s == httpStatus {
			return code
		}
	}
	return codes.FailedPrecondition
}
