// Package lsp is a language server for policy files and for the retry settings of
// other software: what forbear check finds, while a file is written. In policy files
// it also says what a key means, and which keys and values may stand at a place.
//
// It speaks the Language Server Protocol 3.17 over one pair of streams, with
// documents synchronized in full. Requests are served one after the other, in the
// order in which they come: a check takes milliseconds, and a client always sees
// the findings of the text that it sent last.
package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/forbear-go/forbear/policyfile/check"
)

// Options are what a server is told. The zero value knows no signers, so that
// waivers are not taken for valid.
type Options struct {
	// Check has the circumstances of the checks. Its settings are looked for beside
	// each document and above it, and are not those of the options.
	Check check.Options
	// Version is forbear's own.
	Version string
	// Log gets what goes wrong in the protocol, for those who look into a client.
	Log io.Writer
}

// errNoShutdown is what a client that leaves without shutdown has the server end
// with, as the protocol demands.
var errNoShutdown = errors.New("exit without shutdown")

// Serve serves the client at the other end of the streams until it leaves, the input
// ends, or ctx does. It closes in, when that can be closed.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	s := &server{options: o, documents: map[string]*document{}, left: make(chan error, 1)}
	logger := log.New(cmp.Or[io.Writer](o.Log, io.Discard), "forbear: ", 0)
	frames := &framing{log: logger}
	stream := jsonrpc2.NewBufferedStream(&duplex{in, out}, frames)
	handler := jsonrpc2.HandlerWithError(s.handle).SuppressErrClosed()
	conn := jsonrpc2.NewConn(ctx, stream, handler, jsonrpc2.SetLogger(logger))
	<-conn.DisconnectNotify()
	select {
	case err := <-s.left:
		return err
	default:
		return frames.err // or none: the client is gone, or we are asked to go
	}
}

// duplex makes one stream of two.
type duplex struct {
	io.Reader
	io.Writer
}

func (d *duplex) Close() error {
	if c, ok := d.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// server is the state of one connection. One goroutine uses it: the one that reads.
type server struct {
	options   Options
	documents map[string]*document // by their URIs
	size      int                  // of their texts, in bytes
	phase     phase
	left      chan error // gets how the client left
}

// phase is how far a connection is.
type phase uint8

const (
	fresh phase = iota
	serving
	ending
)

// Codes of errors that the protocol has beside those of JSON-RPC.
const codeNotInitialized = -32002

// handle serves one message. What it returns for a notification goes to the log.
func (s *server) handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
	switch {
	case req.Method == "exit":
		if s.phase != ending {
			s.left <- errNoShutdown
		}
		return nil, conn.Close()
	case req.Method == "initialize" && s.phase == fresh:
		s.phase = serving
		return s.capabilities(), nil
	case s.phase == fresh && req.Notif, strings.HasPrefix(req.Method, "$/") && req.Notif:
		return nil, nil // to be dropped, by the protocol
	case s.phase == fresh:
		return nil, &jsonrpc2.Error{Code: codeNotInitialized, Message: "not initialized"}
	case s.phase == ending || req.Method == "initialize":
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "out of order: " + req.Method}
	case req.Method == "shutdown":
		s.phase = ending
		return nil, nil
	}
	return s.serve(ctx, conn, req)
}

// serve serves what is about documents.
func (s *server) serve(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
	switch req.Method {
	case "textDocument/didOpen":
		var p didOpen
		if err := decode(req, &p); err != nil {
			return nil, err
		}
		return nil, s.publish(ctx, conn, p.TextDocument.URI, p.TextDocument.Version, p.TextDocument.Text)
	case "textDocument/didChange":
		var p didChange
		if err := decode(req, &p); err != nil {
			return nil, err
		}
		if len(p.ContentChanges) == 0 {
			return nil, nil
		}
		last := p.ContentChanges[len(p.ContentChanges)-1]
		if last.Range != nil {
			return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: "a change of a part: documents are synchronized in full"}
		}
		return nil, s.publish(ctx, conn, p.TextDocument.URI, p.TextDocument.Version, last.Text)
	case "textDocument/didClose":
		var p documentParams
		if err := decode(req, &p); err != nil {
			return nil, err
		}
		s.forget(p.TextDocument.URI)
		return nil, conn.Notify(ctx, "textDocument/publishDiagnostics", published{URI: p.TextDocument.URI, Diagnostics: []diagnostic{}})
	case "textDocument/hover", "textDocument/completion":
		var p positionParams
		if err := decode(req, &p); err != nil {
			return nil, err
		}
		d := s.documents[p.TextDocument.URI]
		switch {
		case d == nil:
			return nil, nil
		case req.Method == "textDocument/hover":
			return d.hover(p.Position), nil
		default:
			return d.complete(p.Position), nil
		}
	}
	if req.Notif {
		return nil, nil // such as didSave, which says nothing new
	}
	return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "unknown method " + req.Method}
}

// decode reads the parameters of a message.
func decode(req *jsonrpc2.Request, into any) error {
	if req.Params == nil {
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: req.Method + " without parameters"}
	}
	if err := json.Unmarshal(*req.Params, into); err != nil {
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()}
	}
	return nil
}

// What a client may have us keep. A document over its limit is not judged.
const (
	maxDocument  = 4 << 20
	maxDocuments = 64 << 20
)

// publish takes a new text of a document, and sends what is found in it.
func (s *server) publish(ctx context.Context, conn *jsonrpc2.Conn, uri string, version int, text string) error {
	d := s.documents[uri]
	if d == nil {
		d = newDocument(uri)
	}
	s.forget(uri)
	p := published{URI: uri, Version: version}
	if len(text) > maxDocument || s.size+len(text) > maxDocuments {
		p.Diagnostics = []diagnostic{{Severity: severityInformation, Source: source, Message: "too large to be judged here: use forbear check"}}
		return conn.Notify(ctx, "textDocument/publishDiagnostics", p)
	}
	s.documents[uri] = d
	s.size += len(text)
	p.Diagnostics = d.update(text, s.options.Check)
	return conn.Notify(ctx, "textDocument/publishDiagnostics", p)
}

func (s *server) forget(uri string) {
	if d := s.documents[uri]; d != nil {
		s.size -= len(d.text)
		delete(s.documents, uri)
	}
}
