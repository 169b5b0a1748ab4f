package interop

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/export"
)

// gRPC's own client takes the service config, and its calls are retried as the
// policy says.
func TestGRPC(t *testing.T) {
	exported(t, "grpc", func(t *testing.T, p forbear.Policy, out *export.Export) {
		conn, err := grpc.NewClient("passthrough:///127.0.0.1:1",
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(string(out.Config)))
		if err != nil {
			t.Fatalf("%v\n%s", err, out.Config)
		}
		defer conn.Close()
		conn.Connect() // the config counts once the name is resolved
		method := conn.GetMethodConfig("/any.Service/Method")
		for end := time.Now().Add(time.Minute); method.Timeout == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
			method = conn.GetMethodConfig("/any.Service/Method")
		}
		if method.Timeout == nil || *method.Timeout != p.Total {
			t.Fatalf("a call may take %v, want %s", method.Timeout, p.Total)
		}
		want := map[codes.Code]bool{codes.Unavailable: true}
		for label, class := range p.Classify {
			var code codes.Code
			if name, ok := strings.CutPrefix(label, "grpc_"); ok && code.UnmarshalJSON([]byte(strconv.Quote(name))) == nil {
				want[code] = class.Retryable()
			}
		}
		maps.DeleteFunc(want, func(_ codes.Code, retried bool) bool { return !retried })
		retry := method.RetryPolicy
		if p.Retries() == 0 || len(want) == 0 {
			if retry != nil {
				t.Errorf("retries %+v, want none", retry)
			}
			return
		}
		if retry == nil {
			t.Fatalf("no retries\n%s", out.Config)
		}
		if want := min(p.Retries()+1, 5); retry.MaxAttempts != want {
			t.Errorf("%d attempts, want %d", retry.MaxAttempts, want)
		}
		if retry.InitialBackoff != p.Backoff.Base || retry.MaxBackoff != p.Backoff.Cap || retry.BackoffMultiplier != 2 {
			t.Errorf("backoff %+v, want %s to %s", retry, p.Backoff.Base, p.Backoff.Cap)
		}
		if !maps.Equal(retry.RetryableStatusCodes, want) {
			t.Errorf("codes %v, want %v", retry.RetryableStatusCodes, want)
		}
	})
}
