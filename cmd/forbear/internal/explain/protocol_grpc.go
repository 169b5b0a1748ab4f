package explain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
)

// classifyGRPC asks grpcretry about a status with the situation's code and
// trailers. The method is taken to be one that its owner has declared safe to
// repeat, unless the situation names it "keyed": then it needs a key. Trailers
// decide only through grpcretry, which reads pushback by gRFC A6. No trailers at all
// is nil, as a connection that broke gives none.
func classifyGRPC(s *Situation, f *facts) (forbear.Failure, error) {
	code, err := grpcCode(s.Code)
	if err != nil {
		return forbear.Failure{}, err
	}
	switch strings.ToLower(s.Method) {
	case "", "unary", "server_stream", "idempotent":
	case "keyed":
		f.state.NeedsKey = true
	case "client_stream", "bidi_stream":
		f.state.Unreplayable = true
		f.note("what a client has streamed cannot be sent again")
	default:
		return forbear.Failure{}, fmt.Errorf("method %q is unknown for grpc: want unary, server_stream, client_stream, bidi_stream or keyed", s.Method)
	}
	trailer := metadata.MD{}
	for _, t := range s.Trailers {
		trailer.Append(t[0], t[1])
	}
	if len(trailer) == 0 {
		trailer = nil
	}
	failure := grpcretry.Classify(context.Background(), status.Error(code, ""), trailer)
	if failure.Hint.Stop {
		f.note("the server's %s says: do not retry (gRFC A6)", grpcretry.TrailerPushback)
	}
	return failure, nil
}

// grpcCode reads a code by name, label or number, as logs have each. A near miss is
// named in the error: CANCELED and CANCELLED are both in use.
func grpcCode(name string) (codes.Code, error) {
	if name == "" {
		return 0, errors.New("code is missing")
	}
	upper := strings.TrimPrefix(strings.ToUpper(name), "GRPC_")
	if c, ok := grpcretry.ParseCode(upper); ok {
		return c, nil
	}
	if n, err := strconv.ParseUint(name, 10, 8); err == nil && int(n) < len(grpcretry.CodeNames()) {
		return codes.Code(n), nil
	}
	return 0, unknownName("code", name, grpcretry.CodeNames())
}
