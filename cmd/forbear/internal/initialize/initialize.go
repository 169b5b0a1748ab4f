// Package initialize is the command init: a commented policy file to start from.
// Go reserves the name init for functions, so the package has the long one.
package initialize

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/policyfile"
)

// Command returns the command init. What it writes passes check unchanged: a first
// run that ends in findings would teach a team to ignore them. An existing file is
// never replaced without --force.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "init",
		Summary: "write a commented policy file to start from",
		Usage:   "[FLAGS]",
		About: `
Init writes a policy file with the standard's defaults, commented. Names come from
flags or an OpenAPI document. It lists the document's POST and PATCH operations
without an Idempotency-Key, which are not retried.`,
		Examples: `
forbear init --service checkout --dependency payments=https://payments.internal/v1
forbear init --service checkout --openapi payments.openapi.yaml
forbear init --service checkout --dependency search=http://search.internal --file -
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		var p plan
		p.register(f)
		file := f.String("file", "policy.yaml", "`file` to write; - is standard output")
		force := f.Bool("force", false, "replace an existing file")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		// What init writes must load: a name or URL from the flags may not.
		text := p.text()
		if _, err := policyfile.Parse(*file, []byte(text)); err != nil {
			return std.Fail("init: the flags do not make a valid policy file:\n%v", err)
		}
		if *file == "-" {
			fmt.Fprint(std.Out, text)
			return cli.ExitOK
		}
		if err := create(*file, []byte(text), *force); err != nil {
			return std.Fail("init: %v (--force replaces a file)", err)
		}
		fmt.Fprintf(std.Out, "wrote %[1]s; next:\n  forbear check %[1]s\n", *file)
		if p.served() {
			fmt.Fprintf(std.Out, "  forbear serve --config %s\n", *file)
		}
		return cli.ExitOK
	}
	return c
}

// plan is what init knows. The zero value makes a file with one example. It lives
// for one run of the command.
type plan struct {
	service, owner string
	instances      int // 0: not known, and left out
	deps           []planned
}

// planned is a dependency with what its document says. One that comes from a flag
// has a name and perhaps a URL, and nothing else. Keyed and unkeyed decide about
// idempotency: R-6 lets a write be retried only when its server deduplicates it.
type planned struct {
	name, url string
	from      string   // the document, or ""
	methods   []string // that the document has
	keyed     int      // writes that take an Idempotency-Key
	unkeyed   []string // those that do not, as "POST /orders"
}

// register registers the flags that describe the service. An OpenAPI document is
// read while the flags are parsed, so that its faults are those of the flag.
// Dependencies keep the order of the flags.
func (p *plan) register(f *flag.FlagSet) {
	f.StringVar(&p.service, "service", "my-service", "`name` of the service")
	f.IntVar(&p.instances, "instances", 0, "largest `number` of its instances")
	f.StringVar(&p.owner, "owner", "", "`owner` of the retries (default: the service)")
	f.Func("dependency", "dependency, as `name=url` or name; repeatable", func(v string) error {
		name, url, _ := strings.Cut(v, "=")
		if name == "" {
			return errors.New("want name=url")
		}
		p.deps = append(p.deps, planned{name: name, url: url})
		return nil
	})
	f.Func("openapi", "dependency described by this OpenAPI `file`; repeatable", func(v string) error {
		data, err := policyfile.Read(v)
		if err != nil {
			return err
		}
		d, err := fromOpenAPI(v, data)
		if err == nil {
			p.deps = append(p.deps, d)
		}
		return err
	})
}

// head and tail of the file are text and not marshalled, because the comments are what
// a newcomer reads it for.
const (
	head = "# yaml-language-server: $schema=" + policyfile.SchemaURL + `
# The retry policy of %[1]s. Keys that are left out have the standard's defaults.
#
#   forbear check policy.yaml            # is it within the standard?
#   forbear serve --config policy.yaml   # a gateway with these retries, see below
service: %[1]s
%[2]s

dependencies:
`
	tail = `
# consumers:           # queues that the service reads
#   orders:
#     owner: %s
#     dedup: 8d          # at least 7d
#     dead_letter: {queue: orders-dead, alert: orders-oncall}

# waivers:             # exceptions: see forbear policy payload
`
	// defaults are the standard's, written out: they are what a team changes first.
	defaults = `    max_retries: 3         # allowed: 1-5 (R-2)
    total: 30s             # all attempts and all waits (R-3)
    per_attempt: 5s
    backoff: {base: 1s, cap: 30s}    # full jitter (R-1)
    budget: {ratio: 20%, window: 30s} # at most 20 % more load (R-7)
    # strict: true         # drops the 3 retries that a quiet instance always has

`
)

// text returns the file.
func (p *plan) text() string {
	instances := "# instances: 20        # number of instances, for check"
	if p.instances > 0 {
		instances = fmt.Sprint("instances: ", p.instances)
	}
	owner := cmp.Or(p.owner, p.service)
	var b strings.Builder
	fmt.Fprintf(&b, head, p.service, instances)
	if len(p.deps) == 0 {
		p.deps = []planned{{name: "example", url: "https://example.internal"}}
	}
	for _, d := range p.deps {
		d.write(&b, owner)
	}
	p.gateway(&b)
	fmt.Fprintf(&b, tail, owner)
	return b.String()
}

// served reports whether the file has a gateway: a dependency needs a URL for that.
func (p *plan) served() bool {
	return slices.ContainsFunc(p.deps, func(d planned) bool { return d.url != "" })
}

// gateway writes a route for each dependency with a URL, and an example where there is none.
func (p *plan) gateway(b *strings.Builder) {
	mark := ""
	deps := slices.DeleteFunc(slices.Clone(p.deps), func(d planned) bool { return d.url == "" })
	if !p.served() {
		mark, deps = "# ", p.deps[:1]
		b.WriteString("# A gateway needs the url of each dependency that it forwards to.\n")
	}
	fmt.Fprintf(b, "%sgateway:                 # for services in any language; the library needs none\n", mark)
	fmt.Fprintf(b, "%s  listen: 127.0.0.1:8080 # calls to http://127.0.0.1:8080/%s/... are retried as above\n%s  routes:\n", mark, deps[0].name, mark)
	for _, d := range deps {
		fmt.Fprintf(b, "%s    - prefix: /%s\n%s      dependency: %s\n", mark, d.name, mark, d.name)
	}
}

// write writes one dependency. The choice of idempotency errs towards
// not retrying: a key that the server ignores protects from nothing.
func (d *planned) write(b *strings.Builder, owner string) {
	line := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	line("  %s:", d.name)
	if d.from != "" {
		line("    # from %s", d.from)
	}
	if d.url != "" {
		line("    url: %q", d.url)
	}
	line("    owner: %s             # the one layer that retries it", owner)
	if len(d.methods) > 0 {
		line("    methods: [%s]", strings.Join(d.methods, ", "))
	}
	for _, op := range d.unkeyed {
		line("    # %s takes no Idempotency-Key: repeating it may do it twice", op)
	}
	switch {
	case d.from == "": // nothing is known of its keys
		line("    idempotency: reuse     # POST and PATCH only with the caller's key; or generate, if the server honors keys")
	case len(d.unkeyed) == 0 && d.keyed > 0:
		line("    idempotency: generate  # every write takes a key")
	case d.keyed > 0:
		line("    idempotency: reuse     # some writes take a key: callers must send it only to those")
	default:
		line("    idempotency: refuse    # no write takes a key: POST and PATCH are not retried")
	}
	b.WriteString(defaults)
}

var notInNames = regexp.MustCompile(`[^a-z0-9._-]`)

// label turns the title of an API into the name of a dependency: what policy
// files and metric labels allow, and no longer than 64 bytes. Letters outside ASCII
// become dashes. A title that leaves nothing is "api".
func label(title string) string {
	name := notInNames.ReplaceAllString(strings.ToLower(title), "-")
	const most = 64
	return cmp.Or(strings.Trim(name[:min(len(name), most)], "-"), "api")
}

// create writes a new file, and refuses to replace one unless it may: a policy
// file that exists holds decisions that init cannot know. The check and the creation
// are one system call, so two runs at a time cannot both succeed.
func create(name string, data []byte, replace bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if replace {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
