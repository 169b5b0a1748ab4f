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
Init takes what it needs from its flags, and writes the standard's default, with a
comment, for everything else.`,
		Examples: `
forbear init --service checkout --dependency payments=https://payments.internal/v1
forbear init --service checkout --dependency search=http://search.internal --file -
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		var p plan
		p.register(f)
		file := f.String("file", "policy.yaml", "the `file` to write; - is standard output")
		force := f.Bool("force", false, "replace the file when it exists")
		if code, done := c.Parse(std, f, args, 0); done {
			return code
		}
		// What init writes must load: a name or URL from the flags may not.
		text := p.text()
		if _, err := policyfile.Parse(*file, []byte(text)); err != nil {
			return std.Fail("init: the flags do not make a policy file:\n%v", err)
		}
		if *file == "-" {
			fmt.Fprint(std.Out, text)
			return cli.ExitOK
		}
		if err := create(*file, []byte(text), *force); err != nil {
			return std.Fail("init: %v (--force replaces a file)", err)
		}
		fmt.Fprintf(std.Out, "wrote %[1]s; next: forbear check %[1]s\n", *file)
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

// planned is a dependency of a flag.
type planned struct {
	name, url string // url may be ""
}

// register registers the flags that describe the service. Dependencies keep the order of
// the flags.
func (p *plan) register(f *flag.FlagSet) {
	f.StringVar(&p.service, "service", "my-service", "the `name` of the service")
	f.IntVar(&p.instances, "instances", 0, "the largest `number` of its instances")
	f.StringVar(&p.owner, "owner", "", "the `owner` of the retries (default: the service)")
	f.Func("dependency", "a dependency, as `name=url` or name; may be repeated", func(v string) error {
		name, url, _ := strings.Cut(v, "=")
		if name == "" {
			return errors.New("want name=url")
		}
		p.deps = append(p.deps, planned{name: name, url: url})
		return nil
	})
}

// head and tail of the file are text and not marshalled, because the comments are what
// a newcomer reads it for.
const (
	head = "# yaml-language-server: $schema=" + policyfile.SchemaURL + `
# The retry policy of %[1]s. Check it with: forbear check policy.yaml
# What is left out holds the standard's default.
service: %[1]s
%[2]s

dependencies:
`
	tail = `# consumers:           # queues that the service works through
#   orders:
#     owner: %s
#     dedup: 8d          # at least 7d
#     dead_letter: {queue: orders-dead, alert: orders-oncall}

# waivers:             # exceptions: see forbear policy payload
`
	// defaults are the standard's, written out: they are what a team changes first.
	defaults = `    idempotency: reuse     # POST and PATCH only with the caller's key; generate, when the server honors keys
    max_retries: 3         # allowed: 1-5 (R-2)
    total: 30s             # all attempts and all waits (R-3)
    per_attempt: 5s
    backoff: {base: 1s, cap: 30s}    # full jitter (R-1)
    budget: {ratio: 20%, window: 30s} # at most 20 % more load (R-7)
    # strict: true         # takes away the three retries that a quiet instance always has

`
)

// text returns the file.
func (p *plan) text() string {
	instances := "# instances: 20        # how many of it run, for the load that they may add"
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
	fmt.Fprintf(&b, tail, owner)
	return b.String()
}

// write writes one dependency. Nothing is known of its keys: a key that the server ignores
// protects from nothing.
func (d *planned) write(b *strings.Builder, owner string) {
	fmt.Fprintf(b, "  %s:\n", d.name)
	if d.url != "" {
		fmt.Fprintf(b, "    url: %q\n", d.url)
	}
	fmt.Fprintf(b, "    owner: %s             # the one layer that retries it\n", owner)
	b.WriteString(defaults)
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
