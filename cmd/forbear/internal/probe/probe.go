// Package probe is forbear probe: it puts a client, in any language, into some fifty
// situations and says how it retries, beside the standard.
package probe

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// Command returns forbear probe.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "probe",
		Summary: "run a client of any language against failures, and hold its retries against the standard",
		Usage:   "[flags] -- COMMAND [ARGUMENT]...  or  --serve",
		About: `It runs the command again and again, each time against a server of its own on this machine that fails
in one way, and judges what arrives. {url} in an argument is the address to call; {method} and {body} are
the method and the body; {ca} is the file with the authority that servers of HTTPS are signed by. The
command makes one call and ends. The environment has PROBE_URL, PROBE_METHOD, PROBE_BODY, and the
variables by which most programs learn whom to trust.

With --grpc it makes a unary call of any service and method, to {target}: a host and a port. {ca} is empty
where the server speaks without TLS, and has to be among the arguments for the cases of certificates. The
call is taken for one that may be repeated. The environment has PROBE_TARGET and PROBE_CA.

A client that cannot be started from here is pointed by hand to the addresses that --serve opens.

Without {method} the cases of other methods are left out. What could not be judged is listed, and does
not count as a pass. Exit codes: 0 all that was judged holds, 1 something does not, 2 nothing could be judged.`,
		Examples: `  forbear probe -- curl -sS --retry 3 -X {method} -d {body} {url}
  forbear probe -o json -- python3 client.py {url}
  forbear probe -c R-4/503/GET -- ./client {url}
  forbear probe -o policy -- ./client {url} {method}
  forbear probe --grpc -- ./client {target} {ca}
  forbear probe --serve
  forbear probe --list`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		output := f.String("o", "text", "output `format`: text, json, junit or policy")
		page := f.String("html", "", "write a page with the times of all requests to `FILE`, too")
		only := f.String("c", "", "judge only these cases: `ID[,ID]...`")
		list := f.Bool("list", false, "list the cases")
		byHand := f.Bool("serve", false, "start no client: open an address for each case, and a page that fills")
		grpc := f.Bool("grpc", false, "the client makes a unary call of gRPC, one that may be repeated, to {target}")
		listen := f.String("listen", "127.0.0.1:7700", "`ADDRESS` of the page of --serve")
		if code, done := c.Parse(std, f, args, len(args)); done {
			return code
		}
		speaks := overHTTP
		if *grpc {
			speaks = overGRPC
		}
		chosen, err := choose(speaks.cases(), *only)
		switch {
		case err != nil:
			return std.Fail("probe: %v", err)
		case *list:
			for _, one := range chosen {
				fmt.Fprintf(std.Out, "%-24s %s\n", one.ID, one.Title)
			}
			return cli.ExitOK
		case f.NArg() == 0 && !*byHand:
			return std.Fail("probe: which client? Write its command line behind --: forbear probe -- COMMAND %s", speaks.address)
		case !slices.Contains(formats, *output):
			return std.Fail("probe: -o: want %s, got %.20q", cli.OneOf(formats), *output)
		case *byHand && *grpc:
			return std.Fail("probe: --serve is for HTTP: calls of gRPC cannot be told apart by their paths")
		case !*byHand && !slices.ContainsFunc(f.Args(), func(arg string) bool { return strings.Contains(arg, speaks.address) }):
			return std.Fail("probe: no argument has %s: the client has to call the address of the probe", speaks.address)
		}
		var report *Report
		if *byHand {
			report, err = serve(ctx, std, *listen, chosen)
		} else {
			report, err = judge(ctx, std, speaks, f.Args(), chosen)
		}
		if err != nil {
			return std.Fail("probe: %v", err)
		}
		if err := report.write(std.Out, *output, *page); err != nil {
			return std.Fail("probe: %v", err)
		}
		return report.exit()
	}
	return c
}

// choose returns the cases that are named, with those that they need; all for "".
func choose(all []Case, names string) ([]Case, error) {
	if names == "" {
		return all, nil
	}
	want := map[string]bool{healthy: true}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(c Case) bool { return c.ID == name })
		if i < 0 {
			return nil, fmt.Errorf("no case is named %.60q: see --list", name)
		}
		want[name] = true
		want[all[i].of] = true
		if all[i].judgesTrust() {
			want["R-9/trusted"] = true
		}
		if all[i].question != again || all[i].late {
			want[outage], want["R-1/law"] = true, true
			want[overHTTP.heeded], want[overGRPC.heeded] = true, true
		}
	}
	return slices.DeleteFunc(all, func(c Case) bool { return !want[c.ID] }), nil
}

func (c *Case) judgesTrust() bool { return strings.HasPrefix(c.ID, "R-9/") }

// judge runs the client in all cases, side by side, and judges them one after the other.
func judge(ctx context.Context, std *cli.Streams, p *protocol, argv []string, list []Case) (*Report, error) {
	dir, err := os.MkdirTemp("", "forbear-probe-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	pki, err := newPKI(dir)
	if err != nil {
		return nil, err
	}
	client := &client{protocol: p, argv: argv, pki: pki, starting: make(chan struct{}, runtime.NumCPU()+1), all: make(chan struct{}, sideBySide)}
	began := time.Now()
	k := &known{protocol: p, runsByID: map[string][]run{}, placeable: client.takes("{method}"), tellsTLS: p != overGRPC || client.takes("{ca}")}
	fmt.Fprintf(std.Err, "forbear probe: %s in %d cases; most clients take less than a minute\n", argv[0], len(list))
	report := &Report{Command: argv, Protocol: p.name}
	first := client.repeat(ctx, &list[0], 1, k)
	v := list[0].judge(k, first)
	report.add(&list[0], v, first)
	if report.Agent = k.agent; v.Outcome == NotJudged {
		report.Output, report.Took = first[0].Output, time.Since(began)
		return report, nil
	}
	verdicts := map[string]Verdict{}
	show := progress(std.Err, len(list)-1)
	for _, late := range []bool{false, true} {
		client.round(ctx, list[1:], k, late, show)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range list[1:] {
			if c := &list[1+i]; c.late == late {
				verdicts[c.ID] = k.judge(c)
			}
		}
	}
	for i := range list[1:] {
		c := &list[1+i]
		report.add(c, verdicts[c.ID], k.runsByID[c.ID])
	}
	report.learn(k)
	report.Took = time.Since(began)
	return report, nil
}

// judge judges the runs of a case, or of the case whose runs it shares.
func (k *known) judge(c *Case) Verdict {
	runs := k.runsByID[c.runsOf()]
	switch {
	case len(runs) > 0:
		return c.judge(k, runs)
	case c.tls != nil && !k.tellsTLS:
		return notJudged("put {ca} into its command line: it is empty without TLS, and else the file of the authority")
	}
	return notJudged("it sends a %s: put {method} into its command line", k.method)
}

// runsOf is the id of the case whose runs are judged.
func (c *Case) runsOf() string { return cmp.Or(c.of, c.ID) }

// round runs the client in cases, side by side: those that need the results of others are
// late.
func (c *client) round(ctx context.Context, list []Case, k *known, late bool, done func()) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range list {
		one := &list[i]
		if one.script == nil || one.late != late || !k.applies(one) {
			continue
		}
		wg.Go(func() {
			runs := c.repeat(ctx, one, max(one.runs, 1), k)
			mu.Lock()
			defer mu.Unlock()
			k.runsByID[one.ID] = runs
			done()
		})
	}
	wg.Wait()
}

// progress returns what is to be called after each case, one at a time: on a terminal it
// says how many are over.
func progress(w io.Writer, all int) func() {
	if !cli.Terminal(w) {
		return func() {}
	}
	over := 0
	return func() {
		over++
		fmt.Fprintf(w, "\r%d of %d cases \r", over, all)
	}
}

// sideBySide is how many runs wait at the same time.
const sideBySide = 32

// applies reports whether the client can be put into a case.
func (k *known) applies(c *Case) bool {
	return (k.placeable || c.method == "" || c.method == k.method) && (k.tellsTLS || c.tls == nil)
}

// repeat runs a case several times, side by side.
func (c *client) repeat(ctx context.Context, one *Case, times int, k *known) []run {
	runs := make([]run, times)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() { runs[i] = c.run(ctx, one, k) })
	}
	wg.Wait()
	return runs
}
