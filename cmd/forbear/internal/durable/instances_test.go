package durable

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
)

// Processes that share a database know each other while they run.
func TestInstances(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		a, stopA := start(t, Options{Database: database, Instance: sqlstore.Instance{Name: "a", Console: "http://127.0.0.1:1/", Version: "v1"}})
		defer stopA()
		b, stopB := start(t, Options{Database: database, Instance: sqlstore.Instance{Name: "b", Version: "v1"}})
		list := func(s *Service) string {
			status, v := call(t, s, "GET", "/v1/instances", "")
			if status != http.StatusOK {
				t.Fatalf("%d %v", status, v)
			}
			var got []string
			for _, i := range v["instances"].([]any) {
				m := i.(map[string]any)
				got = append(got, fmt.Sprintf("%v %v %v %v", m["name"], m["console"], m["version"], m["self"]))
			}
			return strings.Join(got, ", ")
		}
		waitFor(t, "both", func() bool { return list(a) == "a http://127.0.0.1:1/ v1 true, b  v1 <nil>" })
		if got := list(b); got != "a http://127.0.0.1:1/ v1 <nil>, b  v1 true" {
			t.Errorf("b sees %s", got)
		}
		if _, err := a.DB.Webhooks().Heartbeat(t.Context(), "earlier", time.Minute); err != nil {
			t.Fatal(err)
		}
		stopB()
		if got := list(a); got != "a http://127.0.0.1:1/ v1 true, earlier   <nil>" {
			t.Errorf("a sees %s", got)
		}
	})
}
