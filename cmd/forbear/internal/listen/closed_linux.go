package listen

import "syscall"

// closed makes the file of a unix socket inaccessible to others from its first
// moment: it is made with the mode of the socket, and listenUnix opens it up to the
// mode that was asked for.
func closed(_, _ string, c syscall.RawConn) (err error) {
	if e := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); e != nil {
		return e
	}
	return err
}
