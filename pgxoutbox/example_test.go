//forbear:plain nothing runs at once
package pgxoutbox_test

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forbear-go/forbear/pgxoutbox"
	"github.com/forbear-go/forbear/webhook"
)

// shipAll marks all orders as shipped and tells of each of them.
func shipAll(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `UPDATE orders SET shipped = 1 WHERE shipped = 0 RETURNING id`)
		if err != nil {
			return err
		}
		orders, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return err
		}
		messages := make([]webhook.Message, len(orders))
		for i, order := range orders {
			messages[i] = webhook.Message{
				ID: fmt.Sprintf("order-%d-shipped", order), Endpoints: []string{"acme"}, Type: "order.shipped",
				Body: fmt.Appendf(nil, `{"order":%d}`, order),
			}
		}
		_, err = pgxoutbox.Outbox{CheckEndpoints: true}.Insert(ctx, tx, messages...)
		return err
	})
}

func ExampleOutbox_Insert() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if err := shipAll(ctx, pool); err != nil {
		fmt.Println(err)
	}
}
