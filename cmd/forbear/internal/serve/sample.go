package serve

import (
	_ "embed"
	"fmt"
	"net"

	"github.com/forbear-go/forbear/cmd/forbear/internal/serve/flaky"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/policyfile"
)

// samplePolicy is served where no policy file is named. Its dependencies have
// no address until startSample gives them that of the flaky upstream.
//
//go:embed sample.yaml
var samplePolicy []byte

// startSample starts the flaky upstream and reads the sample policy. A newcomer
// sees retries within a minute, without a service of their own.
func (s *server) startSample() (err error) {
	if s.file, err = policyfile.Parse("the sample policy", samplePolicy); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("starting the sample upstream: %w", err)
	}
	s.sample = gateway.NewServer(flaky.Handler())
	go func() { _ = s.sample.Serve(l) }()
	for i := range s.file.Dependencies {
		s.file.Dependencies[i].URL = "http://" + l.Addr().String()
	}
	return nil
}

// greetSample prints what to try. TestServeSample runs the commands as printed.
func (s *server) greetSample(base, admin string) {
	watch := ""
	if admin != "" {
		watch = fmt.Sprintf("Watch it: %[1]s/ (the console), forbear top --admin %[1]s, or %[1]s/metrics\n", admin)
	}
	fmt.Fprintf(s.out, `forbear gateway on %[1]s, before a flaky upstream (a sample: see --config)

Try:

  # 503 twice, then a response from attempt 3
  curl -i '%[1]s/flaky/status/503?times=2'

  # 429 with Retry-After: the second attempt comes 2 s later
  curl -i '%[1]s/flaky/retry-after/2'

  # a reset connection; a POST is retried only with a key, and with that same key
  curl -i -X POST -H 'Idempotency-Key: 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2' '%[1]s/flaky/reset'

What else it can do: curl '%[1]s/'
%[2]s
%[3]s`, base, s.delivery.greeting(base), watch+s.admin.greeting())
}
