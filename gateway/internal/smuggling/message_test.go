package smuggling

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
)

// message is a request or a response as it was on the wire. It is read by the
// strictest reader there is: what that does not understand, the gateway must
// not send.
type message struct {
	head    []string // the first line and the fields, without their CRLF
	body    string
	trailer []string
	whole   bool // its end has come
}

// errStrict is a message that leaves something to be guessed.
var errStrict = errors.New("not strictly HTTP/1.1")

// readMessage reads a message. method is that of the request that a response
// belongs to; it is empty for requests.
func readMessage(r *bufio.Reader, method string) (m message, err error) {
	if m.head, err = readFields(r); err != nil {
		return m, err
	}
	if len(m.head) == 0 {
		return m, fmt.Errorf("%w: an empty first line", errStrict)
	}
	for _, field := range m.head[1:] {
		if name, _, ok := strings.Cut(field, ":"); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return m, fmt.Errorf("%w: field %q", errStrict, field)
		}
	}
	err = m.readBody(r, method)
	m.whole = err == nil
	return m, err
}

// readBody reads the content as the header section frames it.
func (m *message) readBody(r *bufio.Reader, method string) error {
	length, coding := m.all("Content-Length"), m.all("Transfer-Encoding")
	status := m.status()
	switch {
	case len(length)+len(coding) > 1:
		return fmt.Errorf("%w: framed twice: %q", errStrict, m.head)
	case method == "HEAD" || status/100 == 1 || status == 204 || status == 304:
		return nil
	case len(coding) == 1 && coding[0] != "chunked":
		return fmt.Errorf("%w: transfer coding %q", errStrict, coding[0])
	case len(coding) == 1:
		return m.readChunks(r)
	case len(length) == 1:
		n, err := strconv.ParseUint(length[0], 10, 31)
		if err != nil {
			return fmt.Errorf("%w: length %q", errStrict, length[0])
		}
		return m.take(r, int64(n))
	case method == "":
		return nil // a request without either has no content
	}
	rest, err := io.ReadAll(r)
	m.body = string(rest)
	if status >= 400 && errors.Is(err, syscall.ECONNRESET) {
		// A server that refuses a request does not read the rest of it, which ends
		// the connection for both.
		return nil
	}
	return err
}

func (m *message) readChunks(r *bufio.Reader) error {
	for {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(line, 16, 31)
		if err != nil {
			return fmt.Errorf("%w: chunk size %q", errStrict, line)
		}
		if n == 0 {
			m.trailer, err = readFields(r)
			return err
		}
		if err := m.take(r, int64(n)); err != nil {
			return err
		}
		if line, err := readLine(r); err != nil || line != "" {
			return errors.Join(fmt.Errorf("%w: %q after a chunk", errStrict, line), err)
		}
	}
}

// take appends the next n bytes to the body, or as many as come.
func (m *message) take(r *bufio.Reader, n int64) error {
	var b strings.Builder
	got, err := io.CopyN(&b, r, n)
	m.body += b.String()
	if got < n {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	return nil
}

// status returns a response's status code, or 0.
func (m *message) status() int {
	if len(m.head) == 0 || !strings.HasPrefix(m.head[0], "HTTP/1.") {
		return 0
	}
	parts := strings.SplitN(m.head[0], " ", 3)
	if len(parts) < 2 || len(parts[1]) != 3 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}

// all returns the values of a field, each as its line has it.
func (m *message) all(name string) (values []string) {
	for _, field := range m.head[min(1, len(m.head)):] {
		if n, v, ok := strings.Cut(field, ":"); ok && strings.EqualFold(n, name) {
			values = append(values, strings.Trim(v, " \t"))
		}
	}
	return values
}

// readFields reads lines up to an empty one.
func readFields(r *bufio.Reader) (lines []string, err error) {
	for {
		line, err := readLine(r)
		if err != nil || line == "" {
			return lines, err
		}
		lines = append(lines, line)
	}
}

// readLine reads a line that ends in CRLF and has no CR, LF or NUL of its own.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if err == io.EOF && line != "" {
			err = io.ErrUnexpectedEOF
		}
		return line, err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || strings.ContainsAny(text, "\r\x00") {
		return text, fmt.Errorf("%w: line %q", errStrict, line)
	}
	return text, nil
}
