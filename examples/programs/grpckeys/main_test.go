package main

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forbear-go/forbear/internal/guide"
	"github.com/forbear-go/forbear/internal/pgtest"
)

// TestGRPCKeys: the first attempt makes the payment and its response is lost; the
// second gets that response, and the key is not good for another payment.
func TestGRPCKeys(t *testing.T) {
	address := pgtest.Start(t).Database(t)
	conn, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `CREATE TABLE payments (id bigserial PRIMARY KEY, cents bigint NOT NULL)`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATABASE_URL", address)
	guide.Check(t, "grpc-keys", main)
}
