package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	retry "github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/idempotency"
)

// grpcCaller is the [caller] of gRPC, with switches of its own. It may have several.
type grpcCaller struct {
	wrong        []string
	conn         *grpc.ClientConn
	key, text    string
	tries, waits int
	start        time.Time
}

// grpcMethod is called. The server knows none.
const grpcMethod = "/probe.Probe/Call"

// grpcBase is longer than callerBase: a channel dials again a while after a refusal.
const grpcBase = 2 * callerBase

// trust returns the credentials for a file with an authority; those without TLS for "".
func trust(ca string) credentials.TransportCredentials {
	if ca == "" {
		return insecure.NewCredentials()
	}
	pem, _ := os.ReadFile(ca)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return credentials.NewTLS(&tls.Config{RootCAs: roots})
}

// callGRPC makes one call, and returns the exit code.
func callGRPC(wrong, target, ca string) int {
	c := &grpcCaller{wrong: strings.Split(wrong, ","), key: idempotency.NewKey(), text: "probe", start: time.Now()}
	if c.is("end") && os.Getenv("PROBE_CHILD") == "" {
		return (&caller{}).leave()
	}
	if c.is("same key") {
		c.key = "always"
	}
	dials := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 300 * time.Millisecond, Multiplier: 1, MaxDelay: time.Second}, MinConnectTimeout: 20 * time.Second}
	conn, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(trust(ca)), grpc.WithDisableRetry(), grpc.WithConnectParams(dials))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	c.conn = conn
	for {
		c.tries++
		wait, again, err := c.attempt()
		switch {
		case err == nil:
			return 0
		case !again || c.tries > c.most() || !c.pause(wait):
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

func (c *grpcCaller) is(wrong string) bool { return slices.Contains(c.wrong, wrong) }

func (c *grpcCaller) most() int {
	if c.is("count") {
		return 6
	}
	return callerRetries
}

// attempt sends the request once. wait is what the server asks for; -1 is nothing.
func (c *grpcCaller) attempt() (wait time.Duration, again bool, err error) {
	ctx := context.Background()
	if !c.is("attempt") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callerAttempt)
		defer cancel()
	}
	if c.is("other key") {
		c.key = idempotency.NewKey()
	}
	if c.is("bytes") {
		c.text += "."
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", c.key, "grpc-previous-rpc-attempts", strconv.Itoa(c.tries-1))
	var header, trailer metadata.MD
	err = c.conn.Invoke(ctx, grpcMethod, wrapperspb.String(c.text), &emptypb.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
	if c.is("half") && len(header) > 0 && len(trailer) == 0 {
		return 0, false, nil
	}
	if err == nil {
		return 0, false, nil
	}
	if !c.again(ctx, err, trailer) {
		return 0, false, err
	}
	wait, again = c.asked(status.Convert(err), trailer)
	return wait, again, err
}

// again reports whether a failure is one that is retried.
func (c *grpcCaller) again(ctx context.Context, err error, trailer metadata.MD) bool {
	code := status.Code(err)
	retried := slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted}, code)
	text := err.Error()
	switch {
	case strings.Contains(text, "x509: "):
		return c.is("certificate")
	case ctx.Err() != nil:
		return !c.is("timeout")
	case strings.Contains(text, "HTTP status code"):
		return retried != c.is("http")
	case retried && len(trailer) == 0:
		return !c.is("broken") && !(c.is("stale") && c.tries == 2)
	}
	return retried != c.is(grpccode.Names[code])
}

// asked reads what the server asks for; false is an end.
func (c *grpcCaller) asked(s *status.Status, trailer metadata.MD) (wait time.Duration, again bool) {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && !c.is("retry-info") {
			return info.RetryDelay.AsDuration(), true
		}
	}
	list := trailer["grpc-retry-pushback-ms"]
	if len(list) == 0 || c.is("pushback") {
		return -1, true
	}
	ms, err := strconv.Atoi(list[0])
	switch {
	case err != nil:
		return -1, c.is("rubbish")
	case ms < 0:
		return -1, c.is("stop")
	}
	return time.Duration(ms) * time.Millisecond, ms > 0 || !c.is("zero")
}

// pause waits before the next attempt; false when that does not fit.
func (c *grpcCaller) pause(asked time.Duration) bool {
	base := grpcBase
	if c.is("count") {
		base = callerBase
	}
	ceiling, share := base<<c.waits, rand.Float64()
	c.waits++
	switch {
	case c.is("equal"):
		share = (1 + share) / 2
	case c.is("proportional"):
		share = (2 + share) / 3
	case c.is("none"):
		share = 1
	case c.is("fixed"):
		share, ceiling = 1, base
	case c.is("immediate"):
		share = 0
	}
	wait := max(time.Duration(share*float64(ceiling)), asked)
	if asked == 0 {
		wait = 0 // gRFC A6
	}
	if time.Since(c.start)+wait > callerTotal && !c.is("sits") {
		if c.is("until") { // its own end
			time.Sleep(callerTotal/4 - time.Since(c.start))
		}
		return false
	}
	time.Sleep(wait)
	return true
}

// callForbear makes one call with grpcretry and its defaults.
func callForbear(target, ca string) int {
	r, err := retry.New("probe", retry.Policy{Kind: retry.GRPC})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	conn, err := grpc.NewClient(target, grpcretry.DialOptions(r, grpcretry.WithTransportCredentials(trust(ca)), grpcretry.WithIdempotent("*"))...)
	if err == nil {
		err = conn.Invoke(context.Background(), grpcMethod, wrapperspb.String("probe"), &emptypb.Empty{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// grpcMain is the program of the callers of gRPC.
func grpcMain() {
	target, ca, wrong := os.Getenv("PROBE_TARGET"), os.Getenv("PROBE_CA"), os.Getenv("PROBE_WRONG")
	if wrong == "forbear" {
		os.Exit(callForbear(target, ca))
	}
	os.Exit(callGRPC(wrong, target, ca))
}
