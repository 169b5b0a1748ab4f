package serve

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/policyfile"
)

// deliveryVariables are those of the environment that ask for deliveries.
var deliveryVariables = []string{"FORBEAR_DATABASE", "FORBEAR_API_TOKEN", "FORBEAR_ENCRYPTION_KEY_FILE"}

// decide finds out whether serve delivers. A gateway that only sends requests on
// needs no database and makes none. Deliveries are on where anything asks for
// them, and where they have been going on: a database at the default place holds
// messages that were accepted. d.why is what it was.
func (d *delivery) decide(given *flag.FlagSet, file *policyfile.File, sample bool) {
	d.alone = !keyed(file)
	given.Visit(func(f *flag.Flag) {
		if d.why == "" && slices.Contains(d.flags, f.Name) {
			d.why = "--" + f.Name
		}
	})
	for _, name := range deliveryVariables {
		if d.why == "" && os.Getenv(name) != "" {
			d.why = name
		}
	}
	if d.why == "" && sample { // whose file no one has written
		d.why = "there is no --config"
	}
	if d.why == "" {
		d.why = file.AsksForDeliveries()
	}
	// One that cannot be looked at counts as there: to open it says why.
	if _, err := os.Lstat(database.Default); d.why == "" && !errors.Is(err, fs.ErrNotExist) {
		d.why = "the file is there"
	}
}

// keyed reports whether a route of the file honors idempotency keys.
func keyed(file *policyfile.File) bool {
	return slices.ContainsFunc(file.Gateway.Routes, func(r policyfile.Route) bool { return r.Idempotency.On })
}

// on reports whether serve delivers.
func (d *delivery) on() bool { return !d.off && d.why != "" }

// greeting says in one line whether serve delivers, and how to change that.
func (d *delivery) greeting() string {
	switch {
	case d.off:
		return "deliveries: off by --no-delivery"
	case d.why == "":
		return "deliveries: off, and no database; on with --database " + database.Default
	default:
		where := ""
		if d.api != "" {
			where = "; the API on " + d.api + "/v1/"
		}
		return fmt.Sprintf("deliveries: on, in %s (%s)%s; off with --no-delivery", database.Name(d.options.Database), d.why, where)
	}
}

// explain responds to requests to the API where there is none, and no route that
// would take them: a caller from before must learn how to have it back.
func (d *delivery) explain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") || d.claimed(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		problem.Write(w, problem.Problem{
			Type: problem.Namespace + "no-delivery", Title: "No deliveries", Status: http.StatusNotFound,
			Detail:   "this gateway delivers nothing, since nothing asked it to: forbear serve --database " + database.Default + " does",
			Instance: r.URL.EscapedPath(), CorrelationID: inbound.Correlation(r.Header),
		})
	})
}
