package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/policyfile"
)

// live is the gateway of the moment. A request stays with the one it met.
type live struct {
	mu       sync.RWMutex
	gateway  *gateway.Gateway
	draining bool
}

func (l *live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.RLock()
	g := l.gateway
	l.mu.RUnlock()
	g.ServeHTTP(w, r)
}

func (l *live) set(g *gateway.Gateway) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		g.Drain()
	}
	l.gateway = g
}

func (l *live) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.gateway.Drain()
}

// kept is a Retryer with what it was built from.
type kept struct {
	retryer *forbear.Retryer
	from    retryerInput

	credentials *forbear.Credentials // nil where the policy file names none
	source      policyfile.Credentials
}

type retryerInput struct {
	policy  forbear.Policy
	waivers []policyfile.Waiver
	service string
	noLogs  bool
}

// retryer returns the Retryer of a dependency: the one there is, when nothing
// that it was built from has changed.
func (s *server) retryer(file *policyfile.File, dep policyfile.Dependency) (kept, error) {
	in := retryerInput{dep.Policy, file.Waivers, file.Service, file.Observability.NoLogs}
	credentials, err := s.credentials(dep)
	if err != nil {
		return kept{}, err
	}
	if k, ok := s.kept[dep.Name]; ok && reflect.DeepEqual(k.from, in) {
		k.credentials, k.source = credentials, dep.Credentials
		return k, nil
	}
	shared, err := s.fleet.options(file.Service, dep)
	if err != nil {
		return kept{}, err
	}
	opts := slices.Concat(file.Options(), s.watch.options(), shared)
	r, err := forbear.New(dep.Name, dep.Policy, opts...)
	return kept{r, in, credentials, dep.Credentials}, err
}

// apply puts a policy file in charge, or changes nothing.
func (s *server) apply(file *policyfile.File) error {
	routes, retryers, err := s.routes(file)
	if err != nil {
		return err
	}
	if err := s.openRecords(file); err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{Routes: routes, Logger: s.log, Wrap: s.watch.telemetry.wrap})
	if err != nil {
		return err
	}
	s.live.set(g)
	if s.path != "" { // the sample's upstream has no /v1 of its own
		s.delivery.claims(file.Gateway.Routes, s.log)
	}
	s.file, s.kept = file, retryers
	return nil
}

// reload reads the policy file anew. A file that cannot be used leaves the old
// policy in charge, and the log says so.
func (s *server) reload() {
	file, err := policyfile.Load(s.path)
	if err == nil && len(file.Gateway.Routes) == 0 {
		err = errors.New("it has no gateway.routes")
	}
	old := s.file
	if err == nil {
		err = s.apply(file)
	}
	if err != nil {
		s.log.Error("the policy file is refused, the old policy stays", slog.String("file", s.path))
		if e, ok := errors.AsType[*policyfile.Error](err); ok {
			for _, f := range e.Faults {
				s.log.Error("fault of the policy file", slog.String("fault", f.Error()))
			}
			return
		}
		s.log.Error("fault of the policy file", slog.String("fault", err.Error()))
		return
	}
	changes := policyfile.Diff(old, file)
	s.log.Info("the policy file is in charge", slog.String("file", s.path), slog.Int("changes", len(changes)))
	for _, c := range changes {
		s.log.Info("policy changed", slog.String("change", c.Text))
	}
	if old.Gateway.Listen != file.Gateway.Listen {
		s.log.Warn("gateway.listen takes effect at the next start", slog.String("listen", file.Gateway.Listen))
	}
}

// follow reloads on SIGHUP, and when the file's contents change, until ctx ends.
func (s *server) follow(ctx context.Context, hup <-chan os.Signal) {
	var tick <-chan time.Time
	if s.every > 0 {
		t := time.NewTicker(s.every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			s.seen = s.stamp(s.seen)
			s.reload()
		case <-tick:
			before := s.seen
			if s.seen = s.stamp(before); !bytes.Equal(s.seen.data, before.data) {
				s.reload()
			}
		}
	}
}

// fileStamp tells whether a file has changed.
type fileStamp struct {
	info os.FileInfo
	data []byte
}

// stamp reads the file when it is another than at last, or newer. One that is
// gone for a moment, as while it is being replaced, has not changed.
func (s *server) stamp(last fileStamp) fileStamp {
	info, err := os.Stat(s.path)
	if err != nil {
		return last
	}
	if last.info != nil && os.SameFile(info, last.info) && info.ModTime().Equal(last.info.ModTime()) && info.Size() == last.info.Size() {
		return last
	}
	data, err := policyfile.Read(s.path)
	if err != nil {
		return last
	}
	return fileStamp{info, data}
}
