package framing

import (
	"bytes"
	"math"
)

// scanner follows the requests of one HTTP/1 connection through the bytes that a server
// is about to read. Where a header block says its body's length in two ways it spoils the
// second, so that the server refuses the request; and so it does with all that comes
// after a framing that it cannot follow. The zero value is at the beginning of a
// connection.
type scanner struct {
	state  state
	begun  bool // a request has begun on the connection
	old    bool // it speaks HTTP/1.0
	length bool // it has a Content-Length
	coding bool // it has a Transfer-Encoding
	left   int64
	line   []byte // of the present line what came with earlier reads, bounded
	long   bool   // there was more of it
}

// state is what the next byte belongs to.
type state uint8

const (
	requestLine state = iota
	headerLine
	sized       // a body of so many bytes
	chunkSize   // the line before a chunk
	chunkData   // a chunk
	chunkEnd    // the line end after it
	trailerLine // what follows the last chunk
	unwatched   // another protocol has begun
	lost        // the framing cannot be followed
)

// maxLine bounds what is kept of a line. No name, and no length, is that long.
const maxLine = 128

// scan looks at the next bytes of the connection, and spoils what must be refused.
func (s *scanner) scan(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case unwatched:
			return
		case lost:
			clear(p)
			return
		case sized, chunkData:
			n := min(int64(len(p)), s.left)
			p, s.left = p[n:], s.left-n
			if s.left == 0 && s.state == sized {
				s.state = requestLine
			} else if s.left == 0 {
				s.state = chunkEnd
			}
		default:
			p = s.scanLine(p)
		}
	}
}

// scanLine takes a line, or what there is of it, and returns the rest.
func (s *scanner) scanLine(p []byte) []byte {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		s.keep(p)
		if s.state == headerLine {
			s.spoil(p, s.line)
		}
		return nil
	}
	line := p[:i]
	if len(s.line) > 0 {
		s.keep(line)
		line = s.line
	}
	if s.state == headerLine {
		s.spoil(p[:i], line)
	}
	line = bytes.TrimSuffix(line, []byte{'\r'})
	s.lineEnded(line)
	s.line, s.long = s.line[:0], false
	return p[i+1:]
}

// keep adds a part to the line.
func (s *scanner) keep(part []byte) {
	room := maxLine - len(s.line)
	if len(part) > room {
		part, s.long = part[:room], true
	}
	s.line = append(s.line, part...)
}

// lineEnded goes on after a whole line, or the beginning of one that is long.
func (s *scanner) lineEnded(line []byte) {
	switch s.state {
	case requestLine:
		s.began(line)
	case headerLine:
		if len(line) == 0 && !s.long {
			s.headersEnded()
		} else {
			s.header(line)
		}
	case chunkSize:
		if n, ok := hexadecimal(line); !ok {
			s.state = lost
		} else if n == 0 {
			s.state = trailerLine
		} else {
			s.state, s.left = chunkData, n
		}
	case chunkEnd:
		if s.state = chunkSize; len(line) > 0 {
			s.state = lost
		}
	case trailerLine:
		if len(line) == 0 && !s.long {
			s.state = requestLine
		}
	}
}

// began reads a request line. An empty one before it is passed over, as RFC 9112
// section 2.2 has it.
func (s *scanner) began(line []byte) {
	switch {
	case len(line) == 0:
		return
	case !s.begun && string(line) == "PRI * HTTP/2.0":
		s.state = unwatched
		return
	}
	s.begun, s.state = true, headerLine
	// A line that is too long to be kept ends in what was not seen. The server gives
	// every version a body, so that only the claim to be old is lost.
	s.old = bytes.HasSuffix(line, []byte("HTTP/1.0"))
	s.length, s.coding, s.left = false, false, 0
}

// header reads a whole header line.
func (s *scanner) header(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if isLength(name) && !s.coding {
		n, ok := decimal(bytes.TrimSpace(value))
		if !ok || s.long {
			s.state = lost
		}
		s.length, s.left = true, n
	}
	if isCoding(name) && !s.length {
		s.coding = true
	}
}

// spoil makes a line of the present bytes unreadable that must not go with those
// before it: as soon as its name is there, since the line may come in parts.
func (s *scanner) spoil(p, line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return
	}
	name := line[:colon]
	if isLength(name) && s.coding || isCoding(name) && (s.length || s.old) {
		if i := bytes.IndexByte(p, ':'); i >= 0 {
			p[i] = 0
		}
		s.state = lost
	}
}

// headersEnded goes on to the body, if there is one.
func (s *scanner) headersEnded() {
	switch {
	case s.coding:
		s.state = chunkSize
	case s.left > 0:
		s.state = sized
	default:
		s.state = requestLine
	}
}

var lengthName, codingName = []byte("Content-Length"), []byte("Transfer-Encoding")

func isLength(name []byte) bool { return bytes.EqualFold(name, lengthName) }
func isCoding(name []byte) bool { return bytes.EqualFold(name, codingName) }

// decimal reads a Content-Length.
func decimal(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > math.MaxInt64/10-1 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}

// hexadecimal reads the size of a chunk, which extensions may follow.
func hexadecimal(b []byte) (n int64, ok bool) {
	digits := 0
	for _, c := range b {
		var d byte
		switch {
		case '0' <= c && c <= '9':
			d = c - '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			d = c | 0x20 - 'a' + 10
		default:
			return n, digits > 0
		}
		if digits++; digits > 15 {
			return 0, false
		}
		n = n<<4 | int64(d)
	}
	return n, digits > 0
}
