package grpcretry

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/forbear-go/forbear/internal/unstored"
)

// The headers and trailers that a handler set are stored as lines of these headers:
// "name value", where a value of a name that ends in "-bin" is base64. Records of
// before have none.
const (
	storedHeader  = "Grpc-Stored-Header"
	storedTrailer = "Grpc-Stored-Trailer"
)

// maxMetadata bounds what is stored of them for one response, in bytes: proxies hardly
// let more pass.
const maxMetadata = 8 << 10

// settings stand in for the transport under a handler. They hold back what it sets
// until the response is stored, so that the metadata of a run whose response does not
// count is never seen. They are safe for concurrent use, as the transport is.
type settings struct {
	grpc.ServerTransportStream
	mu              sync.Mutex
	header, trailer metadata.MD
	sent            bool // by the handler's word
}

// errHeadersSent is what gRPC's own transport says, too.
var errHeadersSent = errors.New("the headers have already been sent")

// SetHeader implements [grpc.ServerTransportStream].
func (s *settings) SetHeader(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent {
		return errHeadersSent
	}
	s.header = metadata.Join(s.header, md)
	return nil
}

// SendHeader implements [grpc.ServerTransportStream]. They go out with the response.
func (s *settings) SendHeader(md metadata.MD) error {
	err := s.SetHeader(md)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
	return err
}

// SetTrailer implements [grpc.ServerTransportStream].
func (s *settings) SetTrailer(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trailer = metadata.Join(s.trailer, md)
	return nil
}

// send gives the transport what was held back. A caller that has left gets none of it.
func (s *settings) send() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.ServerTransportStream.SetHeader(s.header)
	_ = s.ServerTransportStream.SetTrailer(s.trailer)
}

// store adds to h what duplicates are to get. It reports false, and adds nothing, when
// that is too large.
func (s *settings) store(h http.Header) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	header, trailer := lines(s.header), lines(s.trailer)
	size := 0
	for _, line := range slices.Concat(header, trailer) {
		size += len(line)
	}
	if size > maxMetadata {
		return false
	}
	if len(header) > 0 {
		h[storedHeader] = header
	}
	if len(trailer) > 0 {
		h[storedTrailer] = trailer
	}
	return true
}

// lines writes metadata down. A value that no wire carries is left out.
func lines(md metadata.MD) (all []string) {
	for _, given := range slices.Sorted(maps.Keys(md)) {
		name := strings.ToLower(given)
		if !storable(name) {
			continue
		}
		for _, value := range md[given] {
			if strings.HasSuffix(name, "-bin") {
				value = base64.StdEncoding.EncodeToString([]byte(value))
			} else if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
				continue
			}
			all = append(all, name+" "+value)
		}
	}
	return all
}

// metadataOf reads what lines wrote.
func metadataOf(lines []string) metadata.MD {
	md := metadata.MD{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		if strings.HasSuffix(name, "-bin") {
			raw, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				continue
			}
			value = string(raw)
		}
		md.Append(name, value)
	}
	return md
}

// storable reports whether metadata of that name, in lower case, is for duplicates,
// too. gRPC's own names and forbear's are written anew for each response, as are those
// by which one exchange is found in logs and traces.
func storable(name string) bool {
	switch name {
	case "", HeaderReplayed, "content-type", "user-agent", "x-correlation-id", "x-request-id", "traceparent", "tracestate":
		return false
	}
	return name[0] != ':' && !strings.ContainsAny(name, " ") && !strings.HasPrefix(name, "grpc-") &&
		!strings.HasPrefix(name, "forbear-") && !unstored.Is(name)
}
