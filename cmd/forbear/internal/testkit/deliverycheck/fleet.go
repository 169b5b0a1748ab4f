package deliverycheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

// Fleet is a number of processes over one database. Its methods are not safe
// for concurrent use, but for Addrs and Kills. Set the exported fields before the
// first call. The zero value of the rest is ready.
type Fleet struct {
	// Command returns the command of a process that serves the API on addr.
	Command func(addr string) *exec.Cmd
	Clock   *Clock
	Random  *rand.Rand

	mu        sync.Mutex
	processes []*process
	kills     []Kill
}

// Kill is the end of one process. Tick orders it among offers and arrivals, and At
// measures it against a lease.
type Kill struct {
	Tick int64
	At   time.Time
}

// process is one running process. It ends when its standard input does, so that
// none outlives the one that started it.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	addr string
}

// Start adds a process, and waits until it responds. Use it for the first process,
// at which the endpoints are registered.
func (f *Fleet) Start(ctx context.Context) error {
	p, err := f.add()
	if err != nil {
		return err
	}
	return p.ready(ctx)
}

// Launch adds processes without waiting for any of them. Starting together is part
// of the test: all of them migrate the same schema at once.
func (f *Fleet) Launch(n int) error {
	for range n {
		if _, err := f.add(); err != nil {
			return err
		}
	}
	return nil
}

// add starts a process at a new address.
func (f *Fleet) add() (*process, error) {
	addr, err := f.address()
	if err != nil {
		return nil, err
	}
	p, err := f.spawn(addr)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.processes = append(f.processes, p)
	f.mu.Unlock()
	return p, nil
}

// address returns a free address with a port below those that the system gives
// to outgoing connections: a killed process gets its port back. Another program may
// take the port before the process does; the check then fails loudly instead of
// testing a stranger.
func (f *Fleet) address() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+f.Random.IntN(12_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no free port")
}

// spawn starts a process at an address, new or that of one that was killed. The same
// address matters: clients and endpoints must find the process again without being
// told.
func (f *Fleet) spawn(addr string) (*process, error) {
	cmd := f.Command(addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, in, addr}, nil
}

// patience is how long a process may take to respond, however slow the machine. It
// bounds the wait for a process that will never come up.
const patience = time.Minute

// ready waits until the API responds. Producers do not need it: to them a process
// that is starting is as good as one that was killed.
func (p *process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	//forbear:ignore FB1001,FB1035 no call has failed: the process is starting
	for {
		err := call(ctx, http.MethodGet, "http://"+p.addr+"/v1/alerts/health", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process at %s does not respond: %w", p.addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// kill ends the process without a chance to write anything back, which is what the
// run is for. SIGKILL leaves no time to release leases, so whatever survives comes
// from the database.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.in.Close()
}

// Addrs returns where the processes listen. The slice is a copy. The addresses stay
// the same through kills.
func (f *Fleet) Addrs() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.processes {
		list = append(list, p.addr)
	}
	return list
}

// Kills returns when processes were killed. The order is that of the kills.
func (f *Fleet) Kills() []Kill {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Kill(nil), f.kills...)
}

// Rampage kills a random process every one to three seconds and starts it again
// at its address, until over says that it is enough. Only one process is down at a
// time. A kill is numbered after the process has ended.
func (f *Fleet) Rampage(ctx context.Context, over func(kills int) bool) error {
	for n := 0; !over(n); n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second + time.Duration(f.Random.Int64N(int64(2*time.Second)))):
		}
		i := f.Random.IntN(len(f.processes))
		f.processes[i].kill()
		f.mu.Lock()
		f.kills = append(f.kills, Kill{f.Clock.Tick(), time.Now()})
		f.mu.Unlock()
		p, err := f.spawn(f.processes[i].addr)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.processes[i] = p
		f.mu.Unlock()
		if err := p.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop kills all processes. It kills as Rampage does: by then the evidence is
// complete, and an orderly end would prove nothing.
func (f *Fleet) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.processes {
		p.kill()
	}
	f.processes = nil
}

// applicationOf names an application that has one endpoint: whoever sends to it
// sends to that.
func applicationOf(endpoint string) string { return "app-of-" + endpoint }

// Register puts the endpoints, each with an application, at the first process. Concurrency is 20, so that
// messages of different keys overtake each other and only the order within a key can
// hold.
func (f *Fleet) Register(ctx context.Context, endpoints []Endpoint, url func(id string) string) error {
	for _, e := range endpoints {
		if err := call(ctx, http.MethodPut, "http://"+f.Addrs()[0]+"/v1/applications/"+applicationOf(e.ID), map[string]any{}, nil); err != nil {
			return fmt.Errorf("application of %s: %w", e.ID, err)
		}
		spec := map[string]any{"url": url(e.ID), "ordered": e.Ordered, "concurrency": 20, "application": applicationOf(e.ID), "types": []string{"*"}}
		if e.Binary {
			spec["format"] = "cloudevents-binary"
		}
		if err := call(ctx, http.MethodPut, "http://"+f.Addrs()[0]+"/v1/endpoints/"+e.ID, spec, nil); err != nil {
			return fmt.Errorf("endpoint %s: %w", e.ID, err)
		}
	}
	return nil
}

// call makes one call of the API, and reads a response of 2xx into out unless
// that is nil. It does not retry: a setup call that fails is a fault of the run.
// Errors quote at most 300 bytes of the response.
func call(ctx context.Context, method, url string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s %.300s", method, url, resp.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
