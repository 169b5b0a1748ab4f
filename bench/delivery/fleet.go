package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// fleet is a few processes of `forbear serve` on one database.
type fleet struct {
	instances []*instance
}

// instance is one process of a fleet.
type instance struct {
	cmd  *exec.Cmd
	addr string
	log  bytes.Buffer // read after done only
	done chan error
}

// binary builds forbear, unless one is named.
func (b *bench) binary(ctx context.Context) (string, error) {
	if b.built != "" {
		return b.built, nil
	}
	path := filepath.Join(b.dir, "forbear")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join("..", "cmd", "forbear")
	cmd.Env = append(os.Environ(), "GOWORK=") // off for bench, and not for forbear
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("forbear cannot be built (run this in the folder bench): %w\n%s", err, out)
	}
	b.built = path
	return path, nil
}

// startFleet starts n processes with the endpoint "a", whose receiver is the sink.
func (b *bench) startFleet(ctx context.Context, binary, database string, n int) (*fleet, error) {
	f := &fleet{}
	for range n {
		i, err := b.startInstance(ctx, binary, database)
		if err == nil {
			f.instances = append(f.instances, i)
			err = i.ready(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	spec, err := json.Marshal(map[string]any{"url": b.sink.url(), "concurrency": senders, "secrets": []string{webhook.NewSecret()}})
	if err == nil {
		err = call(ctx, http.MethodPut, "http://"+f.instances[0].addr+"/v1/endpoints/a", spec)
	}
	if err != nil {
		return nil, errors.Join(err, f.stop())
	}
	return f, nil
}

func (b *bench) startInstance(ctx context.Context, binary, database string) (*instance, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &instance{addr: l.Addr().String(), done: make(chan error, 1)}
	if err := l.Close(); err != nil {
		return nil, err
	}
	args := []string{"serve", "--database", database, "--listen", i.addr, "--admin", "off", "--allow-target", "127.0.0.0/8"}
	i.cmd = exec.CommandContext(ctx, binary, args...)
	i.cmd.Dir, i.cmd.Stdout, i.cmd.Stderr = b.dir, io.Discard, &i.log
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { i.done <- i.cmd.Wait() }()
	return i, nil
}

// ready waits until the API responds.
func (i *instance) ready(ctx context.Context) (err error) {
	for range 600 {
		select {
		case err := <-i.done:
			i.done <- err
			return fmt.Errorf("forbear serve ended: %w: %s", err, i.log.Bytes())
		default:
		}
		if err = call(ctx, http.MethodGet, "http://"+i.addr+"/v1/endpoints", nil); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("forbear serve does not respond: %w", err)
}

// call makes a request that must succeed.
func call(ctx context.Context, method, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return nil
}

// stop ends the processes, in time or not.
func (f *fleet) stop() (err error) {
	for _, i := range f.instances {
		_ = i.cmd.Process.Signal(syscall.SIGINT)
	}
	for _, i := range f.instances {
		select {
		case <-i.done:
		case <-time.After(10 * time.Second):
			_ = i.cmd.Process.Kill()
			err = errors.Join(err, fmt.Errorf("forbear serve did not end: %w", <-i.done))
		}
	}
	return err
}

// used is the processor time of the processes so far.
func (f *fleet) used() (sum time.Duration) {
	for _, i := range f.instances {
		sum += processTime(i.cmd.Process.Pid)
	}
	return sum
}
