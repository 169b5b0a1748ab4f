// Command grpc is a pair that pays once: a server that does each call once for its
// idempotency key, and a client that tries again with the same key when a response is
// lost. docs/guides/grpc-keys.md shows it.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/idempotency"
)

// On PostgreSQL: id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY.
const schema = `CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL)`

type ledger struct{}

// Pay makes a payment in the transaction that stores its response, too.
func (ledger) Pay(ctx context.Context, cents *wrapperspb.Int64Value) (*wrapperspb.StringValue, error) {
	var id int
	insert := idempotency.Tx(ctx).QueryRowContext(ctx, `INSERT INTO payments (cents) VALUES ($1) RETURNING id`, cents.GetValue())
	if err := insert.Scan(&id); err != nil {
		return nil, status.Error(codes.Unavailable, "the database is away")
	}
	return wrapperspb.String(fmt.Sprint("payment ", id)), nil
}

// newServer returns a server that makes each payment once for its key.
func newServer(store idempotency.Store) (*grpc.Server, error) {
	once, err := grpcretry.UnaryServerIdempotency(store, grpcretry.IdempotencyOptions{
		Methods:   []string{payMethod},
		Principal: func(context.Context) (string, error) { return "shop", nil }, // in production: the authenticated caller
		Options:   idempotency.Options{Transaction: true, Production: true},
	})
	if err != nil {
		return nil, err
	}
	// The layers know each other: what this server has tried in vain below is not begun
	// again above.
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(lost(), grpcretry.UnaryServerInterceptor(), once), // lost is of flaky.go
		grpc.ChainStreamInterceptor(grpcretry.StreamServerInterceptor(), grpcretry.StreamServerIdempotency()),
	)
	server.RegisterService(&ledgerService, ledger{}) // in production: pb.RegisterLedgerServer
	return server, nil
}

// dial connects a client that retries.
func dial(address string) (*grpc.ClientConn, error) {
	retryer, err := forbear.New("ledger", forbear.Policy{
		Kind:    forbear.GRPC,
		Backoff: forbear.Backoff{Base: 200 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	secure := grpcretry.WithTransportCredentials(insecure.NewCredentials()) // in production: credentials.NewTLS
	return grpc.NewClient(address, grpcretry.DialOptions(retryer, secure)...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := openStore(ctx, schema) // store.go: a file of SQLite
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store := db.Transactions(db.app)
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
	defer func() { // calls under way end before the store is closed, but for those that hang
		late := time.AfterFunc(20*time.Second, server.Stop)
		defer late.Stop()
		server.GracefulStop()
	}()

	if err := pay(ctx, listener.Addr().String(), db.app); err != nil {
		log.Print(err)
	}
}

// pay is the client: one payment, and then another one under the same key.
func pay(ctx context.Context, address string, pool *sql.DB) error {
	conn, err := dial(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second) // travels with the call
	defer cancel()
	key := idempotency.NewKey() // one for each order, stored with it
	for _, cents := range []int64{42, 43} {
		var receipt wrapperspb.StringValue
		var header metadata.MD
		err = conn.Invoke(grpcretry.WithKey(ctx, key), payMethod, wrapperspb.Int64(cents), &receipt, grpc.Header(&header))
		fmt.Println(cents, "cents:", status.Code(err), receipt.GetValue(), header[grpcretry.HeaderReplayed])
	}
	var count, sum int
	err = pool.QueryRowContext(ctx, `SELECT count(*), sum(cents) FROM payments`).Scan(&count, &sum)
	fmt.Println(count, "payment of", sum, "cents")
	return err
}
