// Command grpckeys is the program of docs/guides/grpc-keys.md: a payment over gRPC that
// is made once, although the response to it is lost.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net"
	"os"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
)

type ledger struct{}

// Pay makes a payment in the transaction that stores its response, too.
func (ledger) Pay(ctx context.Context, cents *wrapperspb.Int64Value) (*wrapperspb.StringValue, error) {
	var id int
	insert := idempotency.Tx(ctx).QueryRowContext(ctx, `INSERT INTO payments (cents) VALUES ($1) RETURNING id`, cents.GetValue())
	if err := insert.Scan(&id); err != nil {
		return nil, status.Error(codes.Unavailable, "the database is away")
	}
	_ = grpc.SetTrailer(ctx, metadata.Pairs("x-left-cents", "58")) // duplicates get it, too
	return wrapperspb.String(fmt.Sprint("payment ", id)), nil
}

// lost stands for the network: the first response does not arrive.
func lost() grpc.UnaryServerInterceptor {
	var calls atomic.Int64
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(ctx, req)
		if calls.Add(1) == 1 {
			return nil, status.Error(codes.Unavailable, "connection lost")
		}
		return reply, err
	}
}

// newServer returns a server that makes each payment once for its key.
func newServer(store *sqlstore.Transactions) (*grpc.Server, error) {
	once, err := grpcretry.UnaryServerIdempotency(store, grpcretry.IdempotencyOptions{
		Methods:   []string{payMethod},
		Principal: func(context.Context) (string, error) { return "shop", nil }, // in earnest: who was authenticated
		Options:   idempotency.Options{Transaction: true, Production: true},
	})
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(lost(), once),
		grpc.ChainStreamInterceptor(grpcretry.StreamServerIdempotency()),
	)
	server.RegisterService(&ledgerService, ledger{})
	return server, nil
}

// dial connects a client that retries.
func dial(address string) (*grpc.ClientConn, error) {
	policy := forbear.Policy{Kind: forbear.GRPC}
	policy.Backoff.Base = 10 * time.Millisecond // for this program; the default is 1 s
	retryer, err := forbear.New("ledger", policy, forbear.WithoutLog())
	if err != nil {
		return nil, err
	}
	secure := grpcretry.WithTransportCredentials(insecure.NewCredentials()) // in earnest: credentials.NewTLS
	return grpc.NewClient(address, grpcretry.DialOptions(retryer, secure)...)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	pool, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db := sqlstore.Postgres(pool)
	if _, err := db.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	store := db.Transactions(pool)
	go idempotency.RunSweeper(ctx, store, nil) // forgets keys after two days
	server, err := newServer(store)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := dial(listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	key := idempotency.NewKey() // one for each order, stored with it
	for _, cents := range []int64{42, 43} {
		var receipt wrapperspb.StringValue
		var header, trailer metadata.MD
		err = conn.Invoke(grpcretry.WithKey(ctx, key), payMethod, wrapperspb.Int64(cents), &receipt, grpc.Header(&header), grpc.Trailer(&trailer))
		fmt.Println(cents, status.Code(err), receipt.GetValue(), header[grpcretry.HeaderReplayed], trailer["x-left-cents"])
	}
	var count, sum int
	if err := pool.QueryRowContext(ctx, `SELECT count(*), sum(cents) FROM payments`).Scan(&count, &sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(count, "payment of", sum, "cents")
}
