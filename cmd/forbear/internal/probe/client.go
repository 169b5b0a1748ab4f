package probe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
)

// client is the program under test.
type client struct {
	*protocol
	argv []string
	pki  *pki
	// starting lets few start at a time: starting costs processors, and waiting does not.
	starting chan struct{}
	// all bounds how many run side by side.
	all chan struct{}
}

// takes reports whether the command line has a placeholder.
func (c *client) takes(placeholder string) bool {
	return slices.ContainsFunc(c.argv, func(arg string) bool { return strings.Contains(arg, placeholder) })
}

const (
	// slowStart is how long a program may take until it calls.
	slowStart = 30 * time.Second
	// stray is how long a server listens for what a client sends after its end.
	stray = 150 * time.Millisecond
	// maxOutput bounds what is kept of a program's output.
	maxOutput = 16 << 10
)

// run is what one run of the client has done.
type run struct {
	Conns    []wire.Conn    `json:"connections"`
	Arrivals []wire.Arrival `json:"arrivals"`
	// Beyond are the requests that arrived at a second server: see [place].
	Beyond []wire.Arrival `json:"beyond,omitempty"`
	// Asked is when it was told to end; 0 when it was not.
	Asked time.Duration `json:"asked_ns,omitempty"`
	// Exit is the program's; -1 when it was ended because the time to watch was over.
	Exit   int           `json:"exit"`
	Took   time.Duration `json:"took_ns"`
	Output string        `json:"output,omitempty"`
	Fault  string        `json:"fault,omitempty"` // why it could not be started

	ended time.Duration // when the program ended by itself, by the clock of the arrivals
}

// sends is how many requests arrived.
func (r *run) sends() int { return len(r.Arrivals) }

// watched reports whether the program was ended by the probe.
func (r *run) watched() bool { return r.Exit < 0 }

// lingers is how long after its last response the program ended.
func (r *run) lingers() time.Duration {
	if r.sends() == 0 {
		return 0
	}
	return max(0, r.ended-r.Arrivals[r.sends()-1].Done)
}

// waits are the times between each response and the next request.
func (r *run) waits() (list []time.Duration) {
	for i := 1; i < len(r.Arrivals); i++ {
		from := r.Arrivals[i-1].Done
		if from == 0 {
			from = r.Arrivals[i-1].Gone
		}
		list = append(list, max(0, r.Arrivals[i].At-from))
	}
	return list
}

// run runs the client once in a case.
func (c *client) run(ctx context.Context, one *Case, k *known) (r run) {
	c.all <- struct{}{}
	defer func() { <-c.all }()
	c.starting <- struct{}{}
	started := sync.OnceFunc(func() { <-c.starting })
	defer started()
	enough := make(chan struct{})
	at := &place{client: c, known: k, method: cmp.Or(one.method, http.MethodGet)}
	if at.method != http.MethodGet {
		at.body = body
	}
	second, err := wire.Listen(func(*wire.Arrival) wire.Step { return one.beyond() }, nil)
	if err != nil {
		return run{Exit: -1, Fault: err.Error()}
	}
	defer second.Close()
	at.beyond = second.URL + "/"
	script := one.script(at)
	var config *tls.Config
	if one.tls != nil {
		config = one.tls(c.pki)
	}
	server, err := wire.Listen(func(a *wire.Arrival) wire.Step {
		if a.Number == one.ends {
			close(enough)
		}
		return script(a)
	}, config)
	if err != nil {
		return run{Exit: -1, Fault: err.Error()}
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := c.command(server.URL+"/", at.method, at.body)
	var output bounded
	cmd.Stdout, cmd.Stderr = &output, &output
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return run{Exit: -1, Fault: err.Error()}
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	go func() {
		select { // the time to watch begins when it calls
		case <-server.First():
			defer time.AfterFunc(one.watch, cancel).Stop()
		case <-time.After(slowStart):
			cancel()
		case <-ctx.Done():
		}
		started()
		<-ctx.Done()
	}()
	select {
	case err = <-over:
		r.ended = server.Now()
		r.Exit = exitOf(err)
		r.Took = time.Since(began)
		time.Sleep(stray)
	case <-enough:
		if one.listens > 0 { // to what goes on after its end
			r.Asked = server.Now()
			ask(cmd)
			select {
			case <-time.After(one.listens):
			case <-ctx.Done():
			}
		}
		r.end(cmd, over, server, began)
	case <-ctx.Done():
		r.end(cmd, over, server, began)
	}
	r.Conns, r.Arrivals = server.Seen()
	_, r.Beyond = second.Seen()
	r.Output = output.String()
	return r
}

// end ends a program with all that it has started.
func (r *run) end(cmd *exec.Cmd, over chan error, server *wire.Server, began time.Time) {
	server.Stop()
	r.Exit, r.Took = -1, time.Since(began)
	endAll(cmd)
	<-over
}

func exitOf(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 0)
	}
	if err != nil {
		return 1
	}
	return 0
}

// body is what methods with one send.
const body = `{"probe":true}`

// place is what a script knows of the run that it is for.
type place struct {
	client       *client
	method, body string
	beyond       string // the address of a second server, under another name
	known        *known
}

// command is the client's command line for a run.
func (c *client) command(url, method, body string) *exec.Cmd {
	target, ca := target(url), c.pki.file
	variables := []string{"PROBE_URL=" + url, "PROBE_METHOD=" + method, "PROBE_BODY=" + body}
	if c.protocol == overGRPC {
		if !strings.HasPrefix(url, "https:") {
			ca = ""
		}
		variables = []string{"PROBE_TARGET=" + target, "PROBE_CA=" + ca}
	}
	fill := strings.NewReplacer("{url}", url, "{target}", target, "{method}", method, "{body}", body, "{ca}", ca)
	argv := make([]string, len(c.argv))
	for i, arg := range c.argv {
		argv[i] = fill.Replace(arg)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), variables...), "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	for _, name := range trustVariables {
		cmd.Env = append(cmd.Env, name+"="+c.pki.file)
	}
	together(cmd)
	cmd.WaitDelay = time.Second
	return cmd
}

// target returns the host and port of an address.
func target(url string) string {
	_, host, _ := strings.Cut(url, "://")
	return strings.TrimSuffix(host, "/")
}

// trustVariables are those by which programs are told what certificates to trust.
var trustVariables = []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE", "PERL_LWP_SSL_CA_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Write(p[:min(len(p), maxOutput-b.b.Len())])
	return len(p), nil
}

func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
