package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"
)

// framing puts a header before each message, as HTTP has it. What it reads is
// bounded, which jsonrpc2's own is not.
type framing struct {
	jsonrpc2.VSCodeObjectCodec
	log *log.Logger
	// err is why the stream is of no more use, once it has ended.
	err error
}

// What a client may send. A text in JSON may take six times its bytes, so that a
// document that is too large still arrives, as a message that is skipped.
const (
	maxHeader  = 4 << 10
	maxMessage = 32 << 20
)

var errHeader = errors.New("not a header of the protocol")

// ReadObject reads the next message that is not too large, and can be read. The others
// are skipped: a client that opens a huge file loses the findings in it, and not the
// server.
func (f *framing) ReadObject(r *bufio.Reader, into any) error {
	for {
		length, err := readHeader(r)
		if errors.Is(err, errHeader) {
			f.err = err // where the next message begins is not known
		}
		if err != nil {
			return err
		}
		if length > maxMessage {
			if _, err := io.CopyN(io.Discard, r, length); err != nil {
				return err
			}
			continue
		}
		// The buffer grows with what comes, and not with what is announced.
		var body bytes.Buffer
		if _, err := io.CopyN(&body, r, length); err != nil {
			return err
		}
		if err = json.Unmarshal(body.Bytes(), into); err == nil {
			return nil
		}
		f.log.Printf("a message that cannot be read: %v", err)
	}
}

// readHeader reads the fields up to the empty line, and returns the length that they
// announce. At the end of the input between two messages it returns io.EOF.
func readHeader(r *bufio.Reader) (length int64, err error) {
	length = -1
	for read := 0; ; {
		line, err := r.ReadSlice('\n')
		read += len(line)
		switch {
		case err == io.EOF && read > 0:
			return 0, io.ErrUnexpectedEOF
		case err == bufio.ErrBufferFull || read > maxHeader:
			return 0, errHeader
		case err != nil:
			return 0, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return 0, errHeader
		}
		if strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || length < 0 {
				return 0, fmt.Errorf("%w: Content-Length %q", errHeader, value)
			}
		}
	}
	if length < 0 {
		return 0, fmt.Errorf("%w: no Content-Length", errHeader)
	}
	return length, nil
}
