//go:build !unix

package direct

import "net"

// canTell says that no connection can be asked whether it is open: net/http sends all.
const canTell = false

type line struct{}

func lineOf(net.Conn) *line { return nil }

func (*line) silent() bool { return false }
