package forward

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/gateway/internal/framing"
)

// asked returns the protocol that a caller wants to change to, or "". HTTP is none: what
// comes after would go past all that the gateway does for a request. And TLS (RFC 2817)
// would be the target's with the caller.
func asked(r *http.Request) (string, error) {
	// After the switch the connection is copied: nothing may still send a body from it.
	if r.ProtoMajor != 1 || r.ContentLength != 0 || !hasToken(r.Header["Connection"], "upgrade") {
		return "", nil
	}
	protocol := strings.Join(r.Header["Upgrade"], ", ")
	for element := range strings.SplitSeq(protocol, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(element), "/")
		switch strings.ToLower(name) {
		case "h2c", "h2", "http", "tls":
			return "", nil
		}
	}
	for i := range len(protocol) {
		if protocol[i] < ' ' || protocol[i] > '~' {
			return "", errUpgrade
		}
	}
	return protocol, nil
}

// errUpgrade is for a protocol that has no name.
var errUpgrade = fmt.Errorf("%w: the name of the protocol to upgrade to is not printable", ErrPath)

// switched says what is wrong with a 101, or nil.
func switched(out *http.Request, resp *http.Response) error {
	want := strings.Join(out.Header["Upgrade"], ", ")
	switch got := resp.Header.Get("Upgrade"); {
	case want == "":
		return &BadResponse{"it switches protocols without being asked to"}
	case !hasToken([]string{want}, got) && !strings.EqualFold(want, got):
		return &BadResponse{"it switches to a protocol that was not requested"}
	}
	return nil
}

// closeWriter is a connection one way of which can be closed.
type closeWriter interface{ CloseWrite() error }

// upgrade passes a 101 on, and then what either side sends, until both have ended or
// one is broken. The caller's context no longer ends it: the server has given the
// connection away.
func (x *Exchange) upgrade(resp *http.Response) Result {
	target, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		_ = resp.Body.Close()
		return Result{Err: &BadResponse{"its connection is not writable"}}
	}
	defer target.Close()
	conn, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return Result{Err: fmt.Errorf("the caller's connection cannot switch protocols: %w", err)}
	}
	defer conn.Close()
	framing.Unwatch(conn)
	upgraded := Result{Begun: true, Upgraded: true}
	if err := writeSwitch(buffered.Writer, x.w.Header(), resp); err != nil {
		return upgraded
	}
	ended := make(chan error, 2)
	go func() { ended <- pipe(conn, target) }()
	go func() { ended <- pipe(target, buffered.Reader) }()
	if err := <-ended; err == nil {
		<-ended
	}
	return upgraded
}

// writeSwitch writes the headers of a 101: those of the gateway and those of the
// target, which are the new protocol's and stay as they are.
func writeSwitch(w *bufio.Writer, own http.Header, resp *http.Response) error {
	for name, values := range own {
		if _, there := resp.Header[name]; !there {
			resp.Header[name] = values
		}
	}
	resp.Body = nil
	if err := resp.Write(w); err != nil {
		return err
	}
	return w.Flush()
}

// pipe copies one way to its end and closes it. An error means that the other way is
// of no use any more; so is an end that cannot be passed on by itself.
func pipe(dst io.Writer, src io.Reader) error {
	if _, err := io.Copy(dst, src); err != nil {
		return err
	}
	c, ok := dst.(closeWriter)
	if !ok {
		return http.ErrNotSupported
	}
	return c.CloseWrite()
}
