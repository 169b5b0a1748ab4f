package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/forbear-go/forbear/sqlstore"
)

const (
	// connectTime bounds one try to connect, for each host of the name, unless the name
	// says another: a machine that is gone says nothing.
	connectTime = 10 * time.Second
	// connectionAge is how long a connection is used at most. A server that has stopped
	// being the primary may go on without a word, and then only new connections find
	// the one that is.
	connectionAge = 5 * time.Minute
)

// openPostgres opens a pool, small enough that a few processes fit into a server's
// default of 100 connections.
func openPostgres(ctx context.Context, name string, use Use, opts []sqlstore.Option) (*DB, error) {
	cfg, err := parse(name)
	if err != nil {
		return nil, err
	}
	ours(cfg, use)
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(8)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	pool.SetConnMaxLifetime(connectionAge)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(reaching(Name(name), err), pool.Close())
	}
	if err := keepsSessions(ctx, pool); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", Name(name), err), pool.Close())
	}
	listen := func(ctx context.Context, channel string, wake func(string)) error {
		return listen(ctx, cfg, channel, wake)
	}
	opts = append([]sqlstore.Option{sqlstore.WithListener(listen)}, opts...)
	return &DB{name: Name(name), server: true, DB: sqlstore.Postgres(pool, opts...), pools: []*sql.DB{pool}}, nil
}

// ours sets what forbear relies on in a connection, whatever the defaults of the server, the
// database or the role are.
func ours(cfg *pgx.ConnConfig, use Use) {
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTime
	}
	// When it connects, and not by statements: poolers know these of each client, and
	// give it no connection that has others.
	session := map[string]string{"client_encoding": "UTF8", "TimeZone": "UTC", "DateStyle": "ISO, MDY", "standard_conforming_strings": "on"}
	for mine := range session {
		maps.DeleteFunc(cfg.RuntimeParams, func(k, _ string) bool { return strings.EqualFold(k, mine) })
	}
	maps.Copy(cfg.RuntimeParams, session)
	named := cfg.ValidateConnect // target_session_attrs
	if named == nil && use.Writes {
		named = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		switch e := conn.ParameterStatus("server_encoding"); e {
		case "UTF8", "": // a proxy need not say
		case "SQL_ASCII":
			// It takes any bytes as they are, and would refuse to give back those that are no
			// UTF-8 to a client that wants it: a row of the outbox may have some.
			if err := conn.Exec(ctx, "SET client_encoding = 'SQL_ASCII'").Close(); err != nil {
				return err
			}
		default:
			return encodingError(e)
		}
		if named == nil {
			return nil
		}
		return named(ctx, conn)
	}
}

// encodingError is the encoding of a database that lacks some characters.
type encodingError string

func (e encodingError) Error() string {
	return fmt.Sprintf("its encoding is %s, and messages can have any character: create another one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0", string(e))
}

// reaching explains why there is no connection.
func reaching(name string, err error) error {
	if wrong, ok := errors.AsType[encodingError](err); ok {
		return fmt.Errorf("database %s: %w", name, wrong)
	}
	if errors.Is(err, pgconn.ErrReadOnlyConnection) {
		return fmt.Errorf("database %s is read-only, perhaps a standby: name the primary, or all hosts as in postgres://a,b/database: %w", name, err)
	}
	return fmt.Errorf("database %s cannot be reached: check that PostgreSQL is running and that --database or FORBEAR_DATABASE is right: %w", name, err)
}

// listen waits for notifications on a connection of its own, which is replaced as those
// of the pool are.
func listen(ctx context.Context, cfg *pgx.ConnConfig, channel string, wake func(payload string)) error {
	ctx, cancel := context.WithTimeout(ctx, connectionAge)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	wake("") // for what happened before
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		wake(n.Payload)
	}
}
