package durable

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/sqlstore"
)

// actor names who asks, for the audit: the token's name, and behind it, or without
// one, the caller's own word, which nothing proves. Control characters are refused,
// because they could forge a line of the trail.
func actor(r *http.Request) string {
	name := r.Header.Get("X-Forbear-Actor")
	if len(name) > 64 || !utf8.ValidString(name) || strings.ContainsFunc(name, label.Control) {
		name = ""
	}
	if name != "" {
		name = "(" + name + ")" // unproved, and no token's name
	}
	name = cmp.Or(strings.TrimSpace(callerOf(r).Name+" "+name), "anonymous")
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return name + " at " + host
}

// listAudit lists who did what, the newest first.
func (s *Service) listAudit(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	f := queue.AuditFilter{Who: q.Get("who"), Action: q.Get("action"), Target: q.Get("target")}
	after, limit, err := pageOf(q)
	if err != nil {
		return 0, nil, err
	}
	if f.Since, f.Until, err = timesOf(q); err != nil {
		return 0, nil, err
	}
	list, next, err := s.DB.DeadLetters().AuditPage(r.Context(), f, after, limit)
	return http.StatusOK, map[string]any{"audit": nonNil(list), "next": cursor(next)}, err
}

// audit records who did what. Where nothing may happen unrecorded, the store does
// it in the same transaction instead; here the deed is done, and a failure to
// record it is an error in the log. The detail holds no payloads and no secrets.
func (s *Service) audit(r *http.Request, action, target, detail string) {
	if err := s.DB.DeadLetters().Audit(r.Context(), queue.Entry{Who: actor(r), Action: action, Target: target, Detail: detail}); err != nil {
		s.log.Error("audit not written", "action", action, "target", target, "error", err.Error())
	}
}

// reveal reports whether payloads and credentials may be shown. That is recorded
// before anything is shown; when it cannot be recorded, nothing is shown.
func (s *Service) reveal(r *http.Request, target string) (bool, error) {
	shown, err := boolOf(r.URL.Query(), "reveal")
	if err != nil || !shown {
		return false, err
	}
	if c := callerOf(r); c.Scope == sqlstore.ScopeReadOnly {
		return false, fmt.Errorf("%w: the token %q cannot reveal payloads: use one of scope application or admin", errForbidden, c.Name)
	}
	return true, s.DB.DeadLetters().Audit(r.Context(), queue.Entry{Who: actor(r), Action: "reveal", Target: target})
}
