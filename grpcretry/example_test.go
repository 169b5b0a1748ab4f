package grpcretry_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
)

// A connection whose calls are retried by a policy.
func ExampleDialOptions() {
	ledger := forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.GRPC}))
	conn, err := grpc.NewClient("dns:///ledger.internal:443", grpcretry.DialOptions(ledger,
		grpcretry.WithTransportCredentials(credentials.NewTLS(nil)),
		grpcretry.WithIdempotent("/ledger.Ledger/Get"),
	)...)
	fmt.Println(conn.Target(), err)
	// Output:
	// dns:///ledger.internal:443 <nil>
}
