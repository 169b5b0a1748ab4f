package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"
)

// A session ends after an hour without a request, and after twelve in all; a page that is
// live asks all the time. It ends with the process, and its token's end is the end of what
// it may do.
const (
	sessionIdle  = time.Hour
	sessionLong  = 12 * time.Hour
	maxSessions  = 1000
	cookiePrefix = "__Host-forbear"
)

// session is who looks at a page. The zero value is someone on this machine, who needs no
// token and may read.
type session struct {
	Name  string // of the token
	Write bool   // whether its token is an operator's
	// Local says that no one has signed in.
	Local bool

	token string // of the delivery API, or ""
	since time.Time
	used  time.Time
}

type digest [sha256.Size]byte

// sessions are those who have signed in, by the digests of their cookies.
type sessions struct {
	mu sync.Mutex
	of map[digest]*session
}

// cookie is the name of a session's cookie. Browsers give the cookies of a host to all of
// its ports, where other instances may be.
func cookie(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return cookiePrefix + "-" + port
	}
	return cookiePrefix
}

// add begins a session, and returns the cookie. Where there are too many, the one that was
// not used for longest ends.
func (s *sessions) add(r *http.Request, added session) *http.Cookie {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	added.since, added.used = now, now
	if len(s.of) >= maxSessions {
		oldest, used := digest{}, now
		for d, other := range s.of {
			if other.used.Before(used) {
				oldest, used = d, other.used
			}
		}
		delete(s.of, oldest)
	}
	s.of[sha256.Sum256([]byte(id))] = &added
	return &http.Cookie{Name: cookie(r), Value: id, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// find returns the session of a request, or nil.
func (s *sessions) find(r *http.Request) *session {
	c, err := r.Cookie(cookie(r))
	if err != nil {
		return nil
	}
	id, now := sha256.Sum256([]byte(c.Value)), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.of[id]
	if found == nil {
		return nil
	}
	if now.Sub(found.used) > sessionIdle || now.Sub(found.since) > sessionLong {
		delete(s.of, id)
		return nil
	}
	found.used = now
	copied := *found
	return &copied
}

// end ends the session of a request.
func (s *sessions) end(r *http.Request) {
	if c, err := r.Cookie(cookie(r)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.of, sha256.Sum256([]byte(c.Value)))
	}
}

// admit returns the session of a request, or that of someone on this machine where nothing
// demands a token. A token that has ended lets no one in.
func (c *Console) admit(r *http.Request) (*session, error) {
	s := c.sessions.find(r)
	if s == nil {
		if c.AdminToken != "" || !local(r) {
			return nil, errSignIn
		}
		s = &session{Local: true}
	}
	if s.token == "" && !s.Local || c.api() == nil {
		return s, nil
	}
	who, err := c.whoami(r, s.token)
	switch {
	case isProblem(err, http.StatusUnauthorized) || isProblem(err, http.StatusForbidden):
		c.sessions.end(r)
		return nil, errSignIn
	case err != nil && s.Local:
		return nil, err // whether a token is demanded is not known
	}
	// A database that is away does not hide what happens now.
	s.Write = s.Write && err == nil && who.Scope == "admin"
	return s, nil
}

// api returns the delivery API, or nil.
func (c *Console) api() http.Handler {
	if c.API == nil {
		return nil
	}
	return c.API()
}
