package pgtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// exec runs statements as the superuser, on a connection of its own. What it speaks
// of PostgreSQL's protocol spares this package a driver, of which each module has
// another, and the tests a process of psql for each of hundreds of databases.
func (s *Server) exec(statements string) error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	startup := binary.BigEndian.AppendUint32(nil, 3<<16) // the protocol's version
	startup = append(startup, "user\x00forbear\x00database\x00postgres\x00\x00"...)
	send := append(frame(startup), 'Q')
	if _, err := conn.Write(append(send, frame([]byte(statements+"\x00"))...)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	for ready := 0; ready < 2; { // once for the connection, once for the statements
		var head [5]byte
		if _, ioErr := io.ReadFull(in, head[:]); ioErr != nil {
			return errors.Join(err, ioErr)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, ioErr := io.ReadFull(in, body); ioErr != nil {
			return errors.Join(err, ioErr)
		}
		switch head[0] {
		case 'E':
			err = errors.Join(err, errors.New(strings.ReplaceAll(strings.Trim(string(body), "\x00"), "\x00", " ")))
		case 'Z':
			ready++
		}
	}
	return err
}

// frame puts the length of a message before it.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
}
