package rabbitconsume_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// install is the line that makes the tests run where RabbitMQ is missing.
const install = "sudo apt-get install rabbitmq-server"

// server is a RabbitMQ of the test's own: its own node, ports, port mapper and
// temporary folder.
type server struct {
	dir              string
	port, dist, epmd int
	mapper           *exec.Cmd
	cmd              *exec.Cmd
}

// newServer starts a server that ends with the test. Without RabbitMQ on the
// machine the test fails when CI=true, and is otherwise skipped with the line
// that installs it.
func newServer(t *testing.T) *server {
	t.Helper()
	ringtest.NotQuick(t, "it starts RabbitMQ")
	if _, err := os.Stat(programs); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("RabbitMQ is not installed: %s", install)
		}
		t.Skipf("NOT RUN: RabbitMQ is not installed: %s", install)
	}
	// A temporary folder of its own: Erlang's paths must not grow too long.
	dir, err := os.MkdirTemp("", "forbear-mq-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{dir: dir, port: porttest.Free(t), dist: porttest.Free(t), epmd: porttest.Free(t)}
	// Erlang would leave a port mapper of the machine behind.
	s.mapper = exec.Command("epmd", "-port", strconv.Itoa(s.epmd), "-address", "127.0.0.1")
	s.mapper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.mapper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.mapper.Process.Kill(); _ = s.mapper.Wait() })
	if err := os.WriteFile(filepath.Join(dir, "plugins"), []byte("[].\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.boot(t)
	t.Cleanup(s.kill)
	return s
}

// programs are not those on the path, which insist on the user rabbitmq.
const programs = "/usr/lib/rabbitmq/bin"

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(programs, name), args...)
	cmd.Dir = s.dir
	cmd.Env = append(
		os.Environ(),
		"HOME="+s.dir, // the cookie is there
		"ERL_EPMD_PORT="+strconv.Itoa(s.epmd),
		"RABBITMQ_NODENAME=forbear"+strconv.Itoa(s.port)+"@localhost",
		"RABBITMQ_CONFIG_FILE="+filepath.Join(s.dir, "none"),
		"RABBITMQ_CONF_ENV_FILE="+filepath.Join(s.dir, "none"),
	)
	return cmd
}

// messages counts the messages of each queue whose name begins so, those that are out and
// not acknowledged included. Only the server itself tells; its tool would take a second to
// ask it. What it says at once of a quorum queue is seconds old, so that each is asked; one
// that was declared just before a crash may have no leader afterwards, and says nothing.
func (s *server) messages(t *testing.T, prefix string) map[string]int {
	t.Helper()
	ask := `Of = fun(Q) -> lists:prefix("` + prefix + `", binary_to_list(element(4, amqqueue:get_name(Q)))) end,
	L = [case amqqueue:get_type(Q) of
		rabbit_quorum_queue -> {amqqueue:get_name(Q), case ra:leader_query(amqqueue:get_pid(Q), fun rabbit_fifo:query_messages_total/1, 1000) of {ok, {_, M}, _} -> M; _ -> 0 end};
		_ -> [{name, N}, {messages, M}] = rabbit_amqqueue:info(Q, [name, messages]), {N, M}
	end || Q <- rabbit_amqqueue:list(<<"/">>), Of(Q)],
	[io:format("~s\t~b~n", [element(4, N), M]) || {N, M} <- L].` + "\n"
	time.Sleep(100 * time.Millisecond) // each question takes two processes, and many ask again and again
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "erl_call", "-address", "127.0.0.1:"+strconv.Itoa(s.dist), "-r", "-e", "-fetch_stdout")
	cmd.Env = append(os.Environ(), "HOME="+s.dir)
	cmd.Stdin = strings.NewReader(ask)
	out, err := cmd.Output()
	if err != nil {
		t.Log(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.Atoi(count); err == nil {
			counts[name] = n
		}
	}
	return counts
}

// boot starts the server and waits until it takes connections.
func (s *server) boot(t *testing.T) {
	t.Helper()
	s.cmd = s.command("rabbitmq-server")
	s.cmd.Env = append(
		s.cmd.Env,
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+strconv.Itoa(s.port),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(s.dist),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(s.dir, "data"),
		"RABBITMQ_LOG_BASE="+filepath.Join(s.dir, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(s.dir, "plugins"),
		// After three minutes by itself it sends to a queue again that was away.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} -rabbit dead_letter_worker_publisher_confirm_timeout 5000",
		"RUNNING_UNDER_SYSTEMD=1", // one process, no shell around it
	)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := os.Create(filepath.Join(s.dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	for range 3000 { // five minutes: beside other work it takes one
		conn, err := s.dial()
		if err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "out"))
	t.Fatalf("RabbitMQ does not come up:\n%s", text)
}

// kill ends the server without notice.
func (s *server) kill() {
	s.signal(syscall.SIGKILL)
	_ = s.cmd.Wait()
}

func (s *server) signal(n syscall.Signal) { _ = syscall.Kill(-s.cmd.Process.Pid, n) }

func (s *server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) url() string { return "amqp://guest:guest@" + s.address() + "/" }

func (s *server) dial() (*amqp.Connection, error) { return amqp.Dial(s.url()) }
