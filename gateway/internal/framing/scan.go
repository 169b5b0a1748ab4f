package framing

import (
	"bytes"
	"math"
)

// scanner follows the requests of one HTTP/1 connection through the bytes that a server
// is about to read. From the place on where two servers could read them in two ways it
// puts others in their place, which every server refuses at once. The zero value is at
// the beginning of a connection.
type scanner struct {
	state  state
	spoilt int  // how many bytes were replaced
	cr     bool // the latest byte of the present line is a carriage return
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
	lost        // nothing of what comes now is for the server
)

// maxLine bounds what is kept of a line. No name, and no length, is that long.
const maxLine = 128

// scan looks at the next bytes of the connection, and replaces what must be refused.
func (s *scanner) scan(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case unwatched:
			return
		case lost:
			s.spoil(p)
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

// maxSpoilt is how many bytes of a refused message a server gets to see before the
// connection ends. It is more than net/http reads of a line or of trailers.
const maxSpoilt = 16 << 10

// spoil replaces bytes, up to the end of the connection, by lines of which none is a
// header, a chunk's size or the end of either: the server comes to a line's end, and so
// to its refusal, without waiting for more.
func (s *scanner) spoil(p []byte) {
	s.state = lost
	for i := range p {
		p[i] = "\x00\n"[s.spoilt&1]
		s.spoilt++
	}
}

// scanLine takes a line, or what there is of it, and returns the rest. A line that
// begins with white space continues the one before it, to some servers (RFC 9112
// section 5.2), and one that a bare line feed ends has not ended to others (section 2.2).
func (s *scanner) scanLine(p []byte) []byte {
	if s.folds(p[0]) {
		s.spoil(p)
		return nil
	}
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		s.keep(p)
		if n, twice := s.framedTwice(p, s.line); twice {
			s.spoil(p[n:])
		}
		return nil
	}
	if i > 0 && p[i-1] != '\r' || i == 0 && !s.cr {
		s.spoil(p[i:])
		return nil
	}
	line := p[:i]
	if len(s.line) > 0 {
		s.keep(line)
		line = s.line
	}
	if n, twice := s.framedTwice(p[:i], line); twice {
		s.spoil(p[n:])
		return nil
	}
	if !s.lineEnded(bytes.TrimSuffix(line, []byte{'\r'})) {
		s.spoil(p[i:])
		return nil
	}
	s.line, s.long, s.cr = s.line[:0], false, false
	return p[i+1:]
}

// folds reports whether the next byte makes its line one that goes on.
func (s *scanner) folds(b byte) bool {
	return (s.state == headerLine || s.state == trailerLine) && len(s.line) == 0 && (b == ' ' || b == '\t')
}

// keep adds a part to the line.
func (s *scanner) keep(part []byte) {
	if len(part) > 0 {
		s.cr = part[len(part)-1] == '\r'
	}
	room := maxLine - len(s.line)
	if len(part) > room {
		part, s.long = part[:room], true
	}
	s.line = append(s.line, part...)
}

// lineEnded goes on after a whole line, or the beginning of one that is long. False
// means that the framing cannot be followed from there on.
func (s *scanner) lineEnded(line []byte) bool {
	switch s.state {
	case requestLine:
		s.began(line)
	case headerLine:
		if len(line) == 0 && !s.long {
			s.headersEnded()
		} else {
			return s.header(line)
		}
	case chunkSize:
		n, ok := hexadecimal(line)
		if s.state, s.left = chunkData, n; n == 0 {
			s.state = trailerLine
		}
		return ok
	case chunkEnd:
		s.state = chunkSize
		return len(line) == 0
	case trailerLine:
		if len(line) == 0 && !s.long {
			s.state = requestLine
		}
	}
	return true
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

// header reads a whole header line, and reports whether it makes sense.
func (s *scanner) header(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch {
	case isLength(name):
		n, ok := decimal(bytes.TrimSpace(value))
		s.length, s.left = true, n
		return ok && !s.long
	case isCoding(name):
		s.coding = true
	}
	return true
}

// framedTwice reports whether a line says the length of the body once more: as soon as
// its name is there, since the line may come in parts. n is where its colon is in the
// present part, or the part's beginning.
func (s *scanner) framedTwice(p, line []byte) (n int, twice bool) {
	if s.state != headerLine {
		return 0, false
	}
	name, _, found := bytes.Cut(line, []byte{':'})
	if !found || !(isLength(name) && s.coding || isCoding(name) && (s.length || s.old)) {
		return 0, false
	}
	return max(bytes.IndexByte(p, ':'), 0), true
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
		if n > math.MaxInt64>>4 {
			return 0, false
		}
		n, digits = n<<4|int64(d), digits+1
	}
	return n, digits > 0
}
