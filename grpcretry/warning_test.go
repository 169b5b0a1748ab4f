package grpcretry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/grpcretry"
)

func TestMisnamedIdempotentMethodsAreLogged(t *testing.T) {
	for _, tt := range []struct{ method, want string }{
		{"*", ""},
		{"/grpc.health.v1.Health/*", ""},
		{"/grpc.health.v1.Health/Check", ""},
		{"/of.another/Method", ""}, // no descriptor says what it has
		{"/grpc.health.v1.Health/Chek", "the service has no such method: did you mean Check?"},
		{"grpc.health.v1.Health/Check", "want /package.Service/Method"},
		{"/Check", "want /package.Service/Method"},
	} {
		var log bytes.Buffer
		grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent(tt.method), grpcretry.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if got := log.String(); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: logged %q, want %q", tt.method, got, tt.want)
		}
	}
}
