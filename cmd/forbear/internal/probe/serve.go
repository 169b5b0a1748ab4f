package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
	"github.com/forbear-go/forbear/internal/loopback"
)

// quiet is how long no request has come when a call is taken to be over.
const quiet = 10 * time.Second

// stand is a case with the server that a client is pointed to by hand. Calls are told apart
// by their paths.
type stand struct {
	one    *Case
	server *wire.Server
}

// byHand reports whether a case can be tried without starting the client.
func (c *Case) byHand() bool { return c.script != nil && !c.late && c.second == nil && c.listens == 0 }

// open starts the server of a case.
func open(one *Case, p *pki) (stand, error) {
	type call struct {
		script wire.Script
		sends  int
	}
	calls := map[string]*call{} // the server asks for one step at a time
	var config *tls.Config
	if one.tls != nil {
		config = one.tls(p)
	}
	server, err := wire.Listen(func(a *wire.Arrival) wire.Step {
		c := calls[a.Target]
		if c == nil {
			c = &call{script: one.script(&place{})}
			calls[a.Target] = c
		}
		c.sends++
		of := *a
		of.Number = c.sends
		return c.script(&of)
	}, config)
	return stand{one, server}, err
}

// runs are the calls that have arrived.
func (s *stand) runs() (list []run) {
	conns, arrivals := s.server.Seen()
	index := map[string]int{}
	for _, a := range arrivals {
		i, ok := index[a.Target]
		if !ok {
			i = len(list)
			index[a.Target] = i
			list = append(list, run{Conns: conns, Exit: -1})
		}
		r := &list[i]
		a.Number = r.sends() + 1
		r.Arrivals = append(r.Arrivals, a)
		if r.Took = s.server.Now() - a.At; r.Took > quiet {
			r.Exit = 0
		}
	}
	if len(list) == 0 && len(conns) > 0 {
		took := s.server.Now() - conns[len(conns)-1].At
		list = []run{{Conns: conns, Took: took, Exit: map[bool]int{true: 0, false: -1}[took > quiet]}}
	}
	return list
}

// serve opens the servers of all cases and a page that fills, until ctx ends. Then it
// returns the report.
func serve(ctx context.Context, std *cli.Streams, listen string, list []Case) (*Report, error) {
	if host, _, err := net.SplitHostPort(listen); err != nil || !loopback.Host(host) {
		return nil, fmt.Errorf("--listen: want an address of this machine such as 127.0.0.1:7700, got %.60q", listen)
	}
	dir, err := os.MkdirTemp("", "forbear-probe-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := newPKI(dir)
	if err != nil {
		return nil, err
	}
	var stands []stand
	for i := range list {
		if !list[i].byHand() {
			continue
		}
		s, err := open(&list[i], p)
		if err != nil {
			return nil, err
		}
		defer s.server.Close()
		stands = append(stands, s)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	page := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Refresh", "2")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		fill(w, stands, list, p.file)
	})}
	go func() { _ = page.Serve(l) }()
	defer func() { _ = page.Close() }()
	fmt.Fprintf(std.Err, "forbear probe: http://%s/ has an address for each case; end it with Ctrl-C for the report\n", l.Addr())
	<-ctx.Done()
	return reportOf(stands, list), nil
}

// reportOf judges what has arrived so far.
func reportOf(stands []stand, list []Case) *Report {
	k := &known{protocol: overHTTP, runsByID: map[string][]run{}, placeable: true, tellsTLS: true}
	for i := range stands {
		if runs := stands[i].runs(); len(runs) > 0 {
			k.runsByID[stands[i].one.ID] = runs
		}
	}
	report := &Report{Command: []string{"by hand"}, Protocol: overHTTP.name}
	for i := range list {
		c := &list[i]
		v := notJudged("nothing came")
		if c.late || c.script != nil && !c.byHand() {
			v = notJudged("it needs a client that the probe starts")
		} else if runs := k.runsByID[c.runsOf()]; len(runs) > 0 {
			v = c.judge(k, runs)
		}
		report.add(c, v, k.runsByID[c.ID])
	}
	report.Agent = k.agent
	report.learn(k)
	return report
}

// fill writes the page: the address of each case, and what has arrived.
func fill(w http.ResponseWriter, stands []stand, list []Case, ca string) {
	report := reportOf(stands, list)
	verdicts := map[string]Finding{}
	for _, f := range report.Cases {
		verdicts[f.ID] = f
	}
	var b strings.Builder
	e := html.EscapeString
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>forbear probe</title><style>%s</style><h1>forbear probe</h1>\n", style)
	fmt.Fprintf(&b, "<p>Call each address once. For %s call it %d times, each time with another path. HTTPS is signed by <code>%s</code>.</p><table>\n", outage, sequences, e(ca))
	for i := range stands {
		s := &stands[i]
		f := verdicts[s.one.ID]
		method := s.one.method
		if method == "" {
			method = http.MethodGet
		}
		fmt.Fprintf(&b, "<tr><td>%s <code>%s/1</code></td><td>%s</td><td class=\"%s\">%s</td><td>%s</td></tr>\n",
			e(method), e(s.server.URL), e(s.one.Title), strings.ReplaceAll(f.Outcome, " ", "-"), e(f.Outcome), e(f.Why))
	}
	b.WriteString("</table>\n")
	for _, id := range []string{"R-3/total", "R-7/outage", "R-1/law", "headers"} {
		f := verdicts[id]
		fmt.Fprintf(&b, "<p>%s: <span class=\"%s\">%s</span>: %s</p>\n", e(f.Title), strings.ReplaceAll(f.Outcome, " ", "-"), e(f.Outcome), e(f.Why))
	}
	_, _ = w.Write([]byte(b.String()))
}
