package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client is an editor at the other end of two pipes. It frames messages by itself,
// so that no fault of ours is undone by its twin.
type client struct {
	t          *testing.T
	to, from   *os.File
	in         *textproto.Reader
	buffered   *bufio.Reader
	id         int
	done       chan error
	transcript bytes.Buffer
}

func connect(t *testing.T, o Options) *client {
	t.Helper()
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, to: to, from: from, buffered: bufio.NewReader(from), done: make(chan error, 1)}
	c.in = textproto.NewReader(c.buffered)
	go func() {
		err := Serve(t.Context(), in, out, o)
		_ = out.Close()
		c.done <- err
	}()
	t.Cleanup(func() { _ = to.Close(); _ = from.Close() })
	return c
}

// notify sends a notification.
func (c *client) notify(method string, params any) {
	c.t.Helper()
	c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// call sends a request, and returns the next message.
func (c *client) call(method string, params any) map[string]any {
	c.t.Helper()
	c.id++
	c.send(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	return c.next()
}

func (c *client) send(message map[string]any) {
	c.t.Helper()
	if message["params"] == nil {
		delete(message, "params")
	}
	body := compact(c.t, message)
	fmt.Fprintf(&c.transcript, "--> %s\n", body)
	if _, err := fmt.Fprintf(c.to, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) next() map[string]any {
	c.t.Helper()
	_ = c.from.SetReadDeadline(time.Now().Add(5 * time.Minute))
	header, err := c.in.ReadMIMEHeader()
	if err != nil {
		c.t.Fatalf("no message: %v", err)
	}
	length, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		c.t.Fatalf("header %v", header)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c.buffered, body); err != nil {
		c.t.Fatal(err)
	}
	var message map[string]any
	if err := json.Unmarshal(body, &message); err != nil || message["jsonrpc"] != "2.0" {
		c.t.Fatalf("%v: %s", err, body)
	}
	fmt.Fprintf(&c.transcript, "<-- %s\n", compact(c.t, message))
	return message
}

// ended waits for the server, and returns what it ended with.
func (c *client) ended() error {
	c.t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(30 * time.Second):
		c.t.Fatal("the server goes on")
		return nil
	}
}

// start does what every client begins with.
func (c *client) start() {
	c.t.Helper()
	c.call("initialize", map[string]any{"processId": nil, "rootUri": nil, "capabilities": map[string]any{}})
	c.notify("initialized", map[string]any{})
}

// open opens a document, and returns what is found in it.
func (c *client) open(uri, text string) []any {
	c.t.Helper()
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "yaml", "version": 1, "text": text}})
	return diagnostics(c.t, c.next())
}

// change replaces its text.
func (c *client) change(uri, text string) []any {
	c.t.Helper()
	c.notify("textDocument/didChange", map[string]any{
		"textDocument": map[string]any{"uri": uri, "version": 2}, "contentChanges": []any{map[string]any{"text": text}},
	})
	return diagnostics(c.t, c.next())
}

// ask asks about a place.
func (c *client) ask(method, uri string, line, character int) any {
	c.t.Helper()
	return c.call("textDocument/"+method, map[string]any{
		"textDocument": map[string]any{"uri": uri}, "position": map[string]any{"line": line, "character": character},
	})["result"]
}

func diagnostics(t *testing.T, message map[string]any) []any {
	t.Helper()
	if message["method"] != "textDocument/publishDiagnostics" {
		t.Fatalf("got %v", message)
	}
	return message["params"].(map[string]any)["diagnostics"].([]any)
}

// compact is a message on one line, with its keys in order.
func compact(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(b.String(), "\n")
}
