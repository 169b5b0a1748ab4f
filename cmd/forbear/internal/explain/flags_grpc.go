package explain

import (
	"errors"
	"flag"
	"strings"
)

// grpcFlags are the flags of explain that only gRPC has.
func grpcFlags(f *flag.FlagSet, s *Situation) {
	f.StringVar(&s.Code, "code", "", "the gRPC code, such as UNAVAILABLE")
	f.Func("trailer", "a trailer of the gRPC answer, as 'name: value'; may be repeated", func(v string) error {
		name, value, ok := strings.Cut(v, ":")
		if !ok {
			return errors.New("want 'name: value'")
		}
		s.Trailers = append(s.Trailers, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
		return nil
	})
}
