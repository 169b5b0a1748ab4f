package grpcretry_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/lattice"
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

// A connection to a Lattice API, whose calls are authorized with a token.
func ExampleWithCredentials() {
	policy, _ := forbear.Profile("lattice")
	policy.Kind = forbear.GRPC
	retryer := forbear.Must(forbear.New("lattice", policy))
	endpoint, id, secret := "lattice.internal", "id", "secret"
	tokens := credential.New(lattice.ClientCredentials("https://"+endpoint+lattice.TokenPath, id, secret))
	dial := grpcretry.DialOptions(retryer, grpcretry.WithCredentials(tokens), grpcretry.WithTransportCredentials(credentials.NewTLS(nil)))
	conn, err := grpc.NewClient("dns:///"+endpoint+":443", dial...)
	fmt.Println(conn.Target(), err)
	// Output: dns:///lattice.internal:443 <nil>
}
