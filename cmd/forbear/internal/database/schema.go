package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
)

// Update brings the schema up to date. With much in the database that takes a
// while, which the log says beforehand: an operator must not take it for a hang.
//
// Where processes of an earlier version may be at work, it applies only what these
// can work beside: on PostgreSQL, and where beside says that one hands over.
func (d *DB) Update(ctx context.Context, log *slog.Logger, beside bool) error {
	d.Note(log)
	if err := d.update(ctx, log, beside); err != nil {
		return fmt.Errorf("database schema: %w", err)
	}
	return nil
}

func (d *DB) update(ctx context.Context, log *slog.Logger, beside bool) error {
	list, err := d.Migrations(ctx)
	if err != nil {
		return err
	}
	if breaking := sqlstore.Breaking(list); len(breaking) > 0 {
		switch {
		case beside:
			return fmt.Errorf("it lacks %s, which would break the process that hands over: stop that process, then start this one", names(breaking))
		case d.server:
			return fmt.Errorf("it lacks %s, which would break processes of the previous version: stop all of them, then run forbear migrate --database %s", names(breaking), d.name)
		}
	}
	if steps := pending(list); len(steps) > 0 {
		log.Info("updating the database schema: this can take long with much data", slog.String("steps", names(steps)))
	}
	if later := slices.DeleteFunc(slices.Clone(list), func(m sqlstore.Migration) bool { return !m.Later }); len(later) > 0 {
		log.Info("a later version of forbear updated the database schema; this version works with it", slog.String("steps", names(later)))
	}
	_, err = d.MigrateLogged(ctx, log)
	if errors.Is(err, sqlstore.ErrRights) {
		return fmt.Errorf("%w: run forbear migrate --database %s as a user with that right (on PostgreSQL the owner of its tables)", err, d.name)
	}
	return err
}

// When the log says that a migration waits: not at once, since the processes of a fleet
// that start together all do so for a moment, and then how often.
const (
	waitsAfter = 2 * time.Second
	againEvery = 30 * time.Second
)

// MigrateLogged is the store's Migrate, and logs what it waits for.
func (d *DB) MigrateLogged(ctx context.Context, log *slog.Logger) ([]sqlstore.Migration, error) {
	next := time.Now().Add(waitsAfter)
	return d.MigrateWaiting(ctx, func(why error) {
		if time.Now().Before(next) {
			return
		}
		next = time.Now().Add(againEvery)
		log.Warn("the database schema cannot be updated yet: trying again", slog.String("because", why.Error()))
	})
}

// pending returns the steps that a database in use lacks. An empty one lacks nothing
// yet.
func pending(list []sqlstore.Migration) []sqlstore.Migration {
	missing := slices.DeleteFunc(slices.Clone(list), func(m sqlstore.Migration) bool { return !m.Applied.IsZero() })
	if len(missing) == len(list) {
		return nil
	}
	return missing
}

// names joins the names of steps.
func names(list []sqlstore.Migration) string {
	var all []string
	for _, m := range list {
		all = append(all, m.String())
	}
	return strings.Join(all, ", ")
}

// UpToDate refuses a database of an earlier version. Processes of that version may
// be at work on it, and a command that reads does not change what they work on. One
// that is empty is set up.
func (d *DB) UpToDate(ctx context.Context) error {
	list, err := d.Migrations(ctx)
	if err != nil {
		return err
	}
	if steps := pending(list); len(steps) > 0 {
		return fmt.Errorf("the database is of an earlier version and lacks %s: run forbear migrate --database %s, or start forbear serve of this version", names(steps), d.name)
	}
	_, err = d.Migrate(ctx)
	return err
}
