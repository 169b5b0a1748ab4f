package console

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/console/internal/page"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/internal/loopback"
)

// nowPage is the page of what retries do now, of one instance.
type nowPage struct {
	gateway.Status
	Rows      []row      `json:"-"` // of Dependencies
	Instances []instance `json:"instances,omitempty"`
	Offset    int        `json:"-"`
	Next      int        `json:"-"` // where the next page begins; 0: there is none
	Before    int        `json:"-"`
}

// row is one dependency or endpoint, summed up over the last hour.
type row struct {
	gateway.DependencyStatus
	ID                            string // of its element
	Calls, Again, Rescued, Broken int64
	Multiplier                    float64 // attempts for each call
	Endpoint                      string  // of webhooks, or ""
	Until                         time.Time
	OOB                           bool // a part of a page that is there
}

// instance is a process that shares the database.
type instance struct {
	Name    string    `json:"name"`
	Console string    `json:"console"`
	Version string    `json:"version"`
	SeenAt  time.Time `json:"seen_at"`
	Self    bool      `json:"self"`
}

// reach leaves out an address that leads to this machine, of a process on another one.
func (i *instance) reach(from string) {
	there, _, _ := net.SplitHostPort(i.Name)
	here, _, _ := net.SplitHostPort(from)
	u, err := url.Parse(i.Console)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || there != here && loopback.Host(u.Host) {
		i.Console = ""
	}
}

// deliveries begins the names of dependencies that webhooks are delivered to.
const deliveries = "webhook:"

func rowOf(d gateway.DependencyStatus, oob bool) row {
	r := row{DependencyStatus: d, ID: idOf(d.Dependency), Multiplier: 1, OOB: oob}
	if h := d.Hour; h != nil {
		r.Calls, r.Again, r.Rescued, r.Broken = sum(h.Calls), sum(h.Retries), sum(h.Saved), sum(h.Failed)
	}
	if r.Calls > 0 {
		r.Multiplier = float64(r.Calls+r.Again) / float64(r.Calls)
	}
	if id, ok := strings.CutPrefix(d.Dependency, deliveries); ok {
		r.Endpoint = id
	}
	if d.Breaker != nil {
		r.Until = d.Breaker.NextProbe
	}
	if d.Delivery != nil && !d.Delivery.NextProbe.IsZero() {
		r.Until = d.Delivery.NextProbe
	}
	return r
}

func sum(list []uint32) (n int64) {
	for _, v := range list {
		n += int64(v)
	}
	return n
}

// idOf makes an id of any name.
func idOf(name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("d%x", h.Sum64())
}

// look reads the rows that a page asks for.
func (c *Console) look(r *http.Request) (p nowPage, err error) {
	q := r.URL.Query()
	p.Offset, _ = strconv.Atoi(q.Get("offset"))
	p.Offset = max(p.Offset, 0)
	ask := url.Values{"sort": {cmp.Or(q.Get("sort"), "trouble")}, "limit": {strconv.Itoa(pageRows)}, "offset": {strconv.Itoa(p.Offset)}}
	if part := q.Get("q"); part != "" {
		ask.Set("q", part)
	}
	if err := c.admin(r, "/admin/status", ask, &p.Status); err != nil {
		return p, err
	}
	for _, d := range p.Dependencies {
		p.Rows = append(p.Rows, rowOf(d, false))
	}
	if n := p.Offset + len(p.Rows); n < p.Total {
		p.Next = n
	}
	p.Before = max(p.Offset-pageRows, 0)
	return p, nil
}

// now shows all dependencies and endpoints, those in trouble first.
func (c *Console) now(r *http.Request, s *session) (*view, error) {
	p, err := c.look(r)
	if err != nil {
		return nil, err
	}
	// Without deliveries, or with a token that is not theirs, this instance stands alone.
	var found struct{ Instances []instance }
	if c.get(r, s, "/v1/instances", nil, &found) == nil && len(found.Instances) > 1 {
		p.Instances = found.Instances
		for i := range p.Instances {
			p.Instances[i].reach(c.Instance)
		}
	}
	return &view{Title: "Now", Tab: "/", Template: "now", Data: p}, nil
}

// nowLive follows the rows of the page. They keep their places, so that none moves under
// a pointer: rows that have got into trouble since are said beside the table.
func (c *Console) nowLive(r *http.Request) look {
	var first []row
	return func(*session) (map[string]page.Markup, error) {
		parts := map[string]page.Markup{}
		latest, err := c.look(r)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = append([]row{}, latest.Rows...) // not nil, also without a row
		}
		strangers := 0
		for _, d := range latest.Rows { // of the first page: on others, the worst are strangers from the start
			if latest.Offset == 0 && d.Trouble.Rank > 0 && !slices.ContainsFunc(first, func(f row) bool { return f.Dependency == d.Dependency }) {
				strangers++
			}
		}
		names := url.Values{}
		for _, f := range first {
			names.Add("name", f.Dependency)
		}
		var same gateway.Status
		if len(names) > 0 {
			if err := c.admin(r, "/admin/status", names, &same); err != nil {
				return nil, err
			}
		}
		for _, d := range same.Dependencies {
			if err := c.cells(parts, rowOf(d, true)); err != nil {
				return nil, err
			}
		}
		parts["news"], err = c.pages.Execute("news", strangers)
		return parts, err
	}
}

// cells puts the cells of a row that change into parts.
func (c *Console) cells(parts map[string]page.Markup, d row) (err error) {
	for _, cell := range []string{"trouble", "hour", "calls", "saved", "budget", "breaker", "pace", "latency"} {
		if parts[d.ID+cell], err = c.pages.Execute("cell-"+cell, d); err != nil {
			return err
		}
	}
	return nil
}

// dependencyPage is one dependency with what was seen of it.
type dependencyPage struct {
	gateway.DependencyDetail
	Row    row    `json:"-"`
	Recent []seen `json:"-"` // of Calls
	Newest int64  `json:"-"` // when the newest of them was, in nanoseconds since 1970
}

// seen is a call with its dependency.
type seen struct {
	Dependency string
	gateway.FailedCall
}

// detail reads one dependency.
func (c *Console) detail(r *http.Request) (p dependencyPage, err error) {
	err = c.admin(r, "/admin/dependencies/"+url.PathEscape(r.PathValue("dependency")), nil, &p.DependencyDetail)
	p.Row = rowOf(p.DependencyStatus, false)
	for _, call := range p.Calls {
		p.Recent, p.Newest = append(p.Recent, seen{p.Dependency, call}), max(p.Newest, call.At.UnixNano())
	}
	return p, err
}

// dependency shows one dependency, and why its last calls failed or were retried.
func (c *Console) dependency(r *http.Request, _ *session) (*view, error) {
	p, err := c.detail(r)
	return &view{Title: p.Dependency, Tab: "/", Template: "dependency", Data: p}, err
}

// dependencyLive follows it. Calls are added to those that the page has, whose newest the
// address says: one that a reader has opened stays as it is.
func (c *Console) dependencyLive(r *http.Request) look {
	newest, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	return func(*session) (map[string]page.Markup, error) {
		p, err := c.detail(r)
		if err != nil {
			return nil, err
		}
		parts := map[string]page.Markup{}
		if old := slices.IndexFunc(p.Recent, func(s seen) bool { return s.At.UnixNano() <= newest }); old >= 0 {
			p.Recent = p.Recent[:old]
		}
		if len(p.Recent) > 0 {
			newest = p.Newest
			if parts["calls"], err = c.pages.Execute("new-calls", p.Recent); err != nil {
				return nil, err
			}
		}
		p.Row.OOB = true
		if err := c.cells(parts, p.Row); err != nil {
			return nil, err
		}
		parts["seen"], err = c.pages.Execute("seen", p)
		return parts, err
	}
}

// whyPage says what a reason means, and what is set for a dependency.
type whyPage struct {
	Reason
	Dependency string `json:"dependency,omitempty"`
	Policy     string `json:"-"`
}

// why explains a reason, for a dependency if one is named.
func (c *Console) why(r *http.Request, _ *session) (*view, error) {
	if c.Reason == nil {
		return nil, errNoPage
	}
	reason, ok := c.Config.Reason(r.PathValue("reason"))
	if !ok {
		return nil, errNoPage
	}
	p := whyPage{Reason: reason, Dependency: r.URL.Query().Get("dependency")}
	if p.Dependency != "" {
		var d gateway.DependencyDetail
		if err := c.admin(r, "/admin/dependencies/"+url.PathEscape(p.Dependency), nil, &d); err != nil {
			return nil, err
		}
		p.Policy = d.Policy
	}
	return &view{Title: reason.Name, Tab: "/", Template: "why", Data: p}, nil
}
