package machine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// roleVariable makes this binary the machine's neighbour: it runs in the machine's
// network, has an upstream and a receiver there, and sends calls and messages.
const roleVariable = "FORBEAR_MACHINE_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVariable) {
	case "":
		code := m.Run()
		for _, dir := range folders {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	case "neighbour":
		err = neighbour(os.Stdin, os.Stdout)
	case "loopback":
		err = loopback()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// counts are what the neighbour has seen.
type counts struct {
	Calls, Refused  int      // through the gateway, and connections refused to any
	Failed          []string // calls that did not get their own response
	Accepted        int      // messages
	Delivered, Lost int      // of those: with their own content, or not
	Wrong           []string // content that is no message's
}

// traffic is the neighbour's state.
type traffic struct {
	mu       sync.Mutex
	n        counts
	accepted map[string]bool // payloads
	received map[string]bool
	client   http.Client
	api      string
}

// neighbour serves and sends until its input ends. Its input is lines: burst sends 300
// messages, status prints the counts, end stops sending, waits for what was accepted
// and prints them.
func neighbour(in io.Reader, out io.Writer) error {
	t := &traffic{accepted: map[string]bool{}, received: map[string]bool{}}
	t.api = cmp.Or(os.Getenv("FORBEAR_MACHINE_API"), "http://127.0.0.1:8080")
	// A connection for each call: each is one that could be refused.
	t.client = http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	fail := make(chan error, 2)
	go func() {
		fail <- http.ListenAndServe("127.0.0.1:9001", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.URL.Path)
		}))
	}()
	go func() { fail <- http.ListenAndServe("127.0.0.1:9002", http.HandlerFunc(t.receive)) }()
	select {
	case err := <-fail:
		return err
	case <-time.After(200 * time.Millisecond):
	}
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for i := range 3 {
		senders.Go(func() { t.send(stop, fmt.Sprintf("m%d", i)) })
		senders.Go(func() { t.call(stop, fmt.Sprintf("c%d", i)) })
	}
	lines := bufio.NewScanner(in)
	for bursts := 0; lines.Scan(); {
		switch lines.Text() {
		case "burst":
			bursts++
			for i := range 300 {
				t.message(fmt.Sprintf("burst%d-%d", bursts, i))
			}
		case "end":
			close(stop)
			senders.Wait()
			for end := time.Now().Add(time.Minute); t.counts().Lost > 0 && time.Now().Before(end); {
				time.Sleep(100 * time.Millisecond)
			}
		}
		if err := json.NewEncoder(out).Encode(t.counts()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// receive takes its time for a message, so that some always wait.
func (t *traffic) receive(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	time.Sleep(100 * time.Millisecond)
	if err == nil {
		t.mu.Lock()
		t.received[string(b)] = true
		t.mu.Unlock()
	}
	w.WriteHeader(http.StatusNoContent)
}

// send sends messages one after the other.
func (t *traffic) send(stop chan struct{}, name string) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
			t.message(fmt.Sprintf("%s-%d", name, i))
		}
	}
}

// message sends one message until it is accepted, as a client with an id does.
func (t *traffic) message(id string) {
	payload := fmt.Sprintf(`{"n":%q,"text":"what %s says"}`, id, id)
	body := fmt.Sprintf(`{"id":%q,"endpoint":"there","payload":%s}`, id, payload)
	for range 20 {
		resp, err := t.client.Post(t.api+"/v1/messages", "application/json", strings.NewReader(body))
		if t.refused(err); err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusOK {
			t.mu.Lock()
			t.accepted[payload] = true
			t.mu.Unlock()
			return
		}
		t.failed(fmt.Sprintf("message %s: %d %s", id, resp.StatusCode, said))
		time.Sleep(100 * time.Millisecond)
	}
	t.failed("message " + id + " was never accepted")
}

// call calls the upstream through the gateway, and looks at each response.
func (t *traffic) call(stop chan struct{}, name string) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		path := fmt.Sprintf("/%s/%d", name, i)
		resp, err := t.client.Get("http://127.0.0.1:8080/up" + path)
		t.refused(err)
		if err != nil {
			t.failed(path + ": " + err.Error())
			continue
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(b) != path {
			t.failed(fmt.Sprintf("%s: %d %q %v", path, resp.StatusCode, b, err))
		}
		t.mu.Lock()
		t.n.Calls++
		t.mu.Unlock()
	}
}

func (t *traffic) refused(err error) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		t.mu.Lock()
		t.n.Refused++
		t.mu.Unlock()
	}
}

func (t *traffic) failed(what string) {
	t.mu.Lock()
	t.n.Failed = append(t.n.Failed, what)
	t.mu.Unlock()
}

// counts compares what was accepted with what was received, by content.
func (t *traffic) counts() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.n
	n.Accepted = len(t.accepted)
	for payload := range t.accepted {
		if t.received[payload] {
			n.Delivered++
		} else {
			n.Lost++
		}
	}
	for payload := range t.received {
		if !strings.Contains(payload, `"text":"what `) {
			n.Wrong = append(n.Wrong, payload)
		}
	}
	return n
}

// neighbourOf starts the neighbour of a machine. ask says a line to it, and returns what
// it has seen by then.
func neighbourOf(m *machine, env ...string) (ask func(line string) counts) {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("nsenter", "--target", m.pid, "--net", self)
	cmd.Env = append(os.Environ(), append(env, roleVariable+"=neighbour")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	var faults bytes.Buffer
	cmd.Stderr = &faults
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	seen := json.NewDecoder(out)
	return func(line string) (n counts) {
		m.t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			m.t.Fatalf("%v\n%s", err, &faults)
		}
		if err := seen.Decode(&n); err != nil {
			m.t.Fatalf("%v\n%s", err, &faults)
		}
		return n
	}
}
