package database

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errName refuses what is neither a server nor a file. What was given is not repeated:
// it may hold a password.
var errName = errors.New("want postgres://user@host/database, libpq keywords such as 'host=... dbname=...', or the path of an SQLite file (with ./ before a name that has a colon)")

// The forms of a name that are not a path.
var (
	// keywords is one of those that libpq's connection strings begin with, or that hold
	// a secret.
	keywords = regexp.MustCompile(`(?i)(?:^|\s)(?:host|hostaddr|port|dbname|database|user|password|passfile|service|servicefile|sslmode|sslpassword|application_name|connect_timeout|target_session_attrs)\s*=`)
	// scheme is that of a URL, with or without its slashes. A single letter is a drive.
	scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+]+):`)
	// login is a URL without a scheme.
	login = regexp.MustCompile(`^[^/\\]*:[^/\\]*@`)
)

// isServer reports whether a name is that of a PostgreSQL database.
func isServer(name string) bool { return isURL(name) || isKeywords(name) }

// isURL reports whether a name is a PostgreSQL URL; like all schemes its own is written
// in any case.
func isURL(name string) bool {
	before, _, ok := strings.Cut(name, "://")
	before = strings.ToLower(before)
	return ok && (before == "postgres" || before == "postgresql")
}

// isKeywords reports whether a name is a connection string of libpq's other form.
func isKeywords(name string) bool { return !isURL(name) && keywords.MatchString(name) }

// check refuses a name that is of no form which Open understands. As a path it would
// make a file that is named after a password.
func check(name string) error {
	if isServer(name) {
		return nil
	}
	found := scheme.FindStringSubmatch(name)
	switch {
	case found != nil && strings.EqualFold(found[1], "file"):
		return errors.New("database file:...: want the path alone, as in --database forbear.db")
	case found != nil:
		return fmt.Errorf("database %s:...: %w", found[1], errName)
	case login.MatchString(name), strings.Contains(name, "://"):
		return fmt.Errorf("database: %w", errName)
	}
	return nil
}

// parse reads the name of a server.
func parse(name string) (*pgx.ConnConfig, error) {
	if before, after, ok := strings.Cut(name, "://"); ok && isURL(name) {
		if mistaken(after) {
			return nil, errMistaken
		}
		name = strings.ToLower(before) + "://" + after
	}
	cfg, err := pgx.ParseConfig(name)
	if err != nil || strings.Contains(cfg.Host, "@") { // without the parser's words, which repeat the name
		return nil, errMistaken
	}
	return cfg, nil
}

var errMistaken = errors.New("database " + hidden + ": it cannot be parsed: write / and @ in a password as %2F and %40")

// mistaken reports whether a URL without its scheme has its host elsewhere than it seems:
// a password with a slash that is not escaped reads as a part of the path.
func mistaken(rest string) bool {
	_, path, _ := strings.Cut(rest, "/")
	path, query, _ := strings.Cut(path, "?")
	key, _, _ := strings.Cut(query, "=")
	return strings.Contains(path+key, "@")
}

// Name returns what may be shown of a database's name: a path, or a server's place.
func Name(name string) string {
	switch {
	case isServer(name):
		return serverPlace(name)
	case check(name) != nil:
		return "(unreadable)"
	}
	path, _, _ := strings.Cut(name, "?")
	return path
}

// hidden stands for a server whose name cannot be told from its secrets.
const hidden = "postgres://(unreadable)"

// serverPlace hides what the name of a server may hold besides its place.
func serverPlace(name string) string {
	cfg, err := parse(name)
	if err != nil {
		return hidden
	}
	if strings.HasPrefix(cfg.Host, "/") {
		return (&url.URL{Scheme: "postgres", Path: "/" + cfg.Database, RawQuery: url.Values{"host": {cfg.Host}}.Encode()}).String()
	}
	hosts := []string{hostPort(cfg.Host, cfg.Port)}
	for _, f := range cfg.Fallbacks { // of each host with TLS and without
		if at := hostPort(f.Host, f.Port); at != hosts[len(hosts)-1] {
			hosts = append(hosts, at)
		}
	}
	return "postgres://" + strings.Join(hosts, ",") + (&url.URL{Path: "/" + cfg.Database}).EscapedPath()
}

// hostPort leaves the default port out.
func hostPort(host string, port uint16) string {
	if port == 5432 && !strings.Contains(host, ":") {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
