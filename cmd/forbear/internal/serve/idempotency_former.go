package serve

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/sqlstore"
)

// formerScope returns where versions before v0.1.0 kept the records of a route: under the
// caller alone, all callers as "all", and those with tokens without their issuer. v0.2.0
// has forgotten it: by then such records have expired.
func (in *ingress) formerScope(file *policyfile.File, r policyfile.Route) func(scope string) (string, bool) {
	p, alone := r.Idempotency.Principal, true
	for _, other := range file.Gateway.Routes {
		apart := other.Host == r.Host && maps.Equal(other.Headers, r.Headers) // the prefix or the method decides
		alone = alone && (!other.Idempotency.On || apart || !within(other.Prefix, r.Prefix) && !within(r.Prefix, other.Prefix))
	}
	return func(scope string) (former string, sure bool) {
		switch {
		case !in.former.Load():
			return "", false
		case p.Single:
			return "all", alone
		case p.JWT == (policyfile.JWT{}):
			return scope, alone
		}
		if i := strings.IndexByte(scope, ' '); i >= 0 { // behind its issuer
			scope = scope[i+1:]
		}
		subject, err := url.PathUnescape(scope)
		if err != nil {
			subject = scope
		}
		return subject, alone && p.JWT.Issuer != ""
	}
}

// within reports whether a route's prefix is in another's.
func within(prefix, other string) bool {
	return prefix == other || strings.HasPrefix(prefix, strings.TrimSuffix(other, "/")+"/")
}

// The steps of the schema that made the table of the records, and the first one that no
// version before v0.1.0 has.
const (
	stepRecords = 10
	stepPlaces  = 160
)

// longest is how long a record of an earlier version may be kept at least, whatever the
// policy file says now.
const longest = 7 * 24 * time.Hour

// hasFormer reports whether the database may have records of an earlier version: for as
// long after its upgrade as such records are kept, and while one of them is held. A look at
// the store for each new key costs a quarter of what the key costs, and more on a busy one.
func hasFormer(ctx context.Context, db *database.DB, retention time.Duration, now time.Time) bool {
	steps, err := db.Migrations(ctx)
	if err != nil {
		return true
	}
	applied := func(step int) (at time.Time) {
		if i := slices.IndexFunc(steps, func(m sqlstore.Migration) bool { return m.Version == step }); i >= 0 {
			at = steps[i].Applied
		}
		return at
	}
	upgraded := applied(stepPlaces)
	if upgraded.Sub(applied(stepRecords)) < 10*time.Second { // made by this version, or a later one
		return false
	}
	if now.Sub(upgraded) < max(retention, longest) {
		return true
	}
	held, err := db.Idempotency().List(ctx, idempotency.Filter{State: idempotency.Held, Limit: 1000})
	return err != nil || len(held) == 1000 || slices.ContainsFunc(held, func(r idempotency.Record) bool { return r.Created.Before(upgraded) })
}

// retentionOf returns how long the routes of a file keep responses at most.
func retentionOf(file *policyfile.File) (longest time.Duration) {
	for _, r := range file.Gateway.Routes {
		longest = max(longest, cmp.Or(r.Idempotency.Retention, 48*time.Hour))
	}
	return longest
}
