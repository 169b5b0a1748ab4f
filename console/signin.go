package console

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/loopback"
)

// slowdown is how long a token that is wrong takes to be refused: with [maxSignIns] it
// bounds how many can be tried.
const slowdown = time.Second

// local reports whether a request comes from this machine, by a name of it and through no
// proxy, which would let others in.
func local(r *http.Request) bool { return loopback.Host(r.Host) && !inbound.Forwarded(r) }

// signInForm is the page on which to sign in.
type signInForm struct {
	Next  string
	Error string
}

// signInPage shows it. A browser that has just signed in and is here again has not kept
// the cookie.
func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	form := signInForm{Next: place(r.URL.Query().Get("next"))}
	if c.sessions.find(r) != nil {
		http.Redirect(w, r, form.Next, http.StatusSeeOther)
		return
	}
	if r.URL.Query().Has("again") {
		form.Error = "Your browser did not keep the session: it keeps it over HTTPS only, or under the name localhost."
	}
	c.write(w, r, http.StatusOK, nil, &view{Title: "Sign in", Template: "signin", Data: form})
}

// signIn checks a token, slowly, and begins a session.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // a body that never ends must not hold a place
	select {
	case c.signIns <- struct{}{}:
		defer func() { <-c.signIns }()
	default:
		c.fail(w, r, nil, errTooQuick)
		return
	}
	next := place(r.PostFormValue("next"))
	s, why := c.check(r, strings.TrimSpace(r.PostFormValue("token")))
	if s == nil {
		c.Logger.LogAttrs(r.Context(), slog.LevelWarn, "console sign-in refused", slog.String("peer", r.RemoteAddr))
		<-time.After(slowdown) // also after the client has left, which would free its place
		c.write(w, r, http.StatusForbidden, nil, &view{Title: "Sign in", Template: "signin", Data: signInForm{next, why}})
		return
	}
	c.Logger.LogAttrs(r.Context(), slog.LevelInfo, "console sign-in", slog.String("token", s.Name), slog.String("peer", r.RemoteAddr))
	c.sessions.end(r) // an earlier one of the same browser
	http.SetCookie(w, c.sessions.add(r, *s))
	http.Redirect(w, r, "/sign-in?again&next="+url.QueryEscape(next), http.StatusSeeOther)
}

// check returns the session that a token is good for, or why it is good for none.
func (c *Console) check(r *http.Request, token string) (s *session, why string) {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(c.AdminToken))
	if c.AdminToken != "" && subtle.ConstantTimeCompare(given[:], want[:]) == 1 {
		return &session{Name: "admin-token", Write: true}, ""
	}
	if token == "" || c.api() == nil {
		return nil, "This token is not known."
	}
	who, err := c.whoami(r, token)
	switch {
	case err != nil || who.Name == "":
		return nil, "This token is not known, or has expired."
	case who.Application != "":
		return nil, "This token is for one application: the console shows all of them, and wants a token of scope admin or read-only."
	}
	return &session{Name: who.Name, Write: who.Scope == "admin", token: token}, ""
}

// signOut ends a session.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	c.sessions.end(r)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// place returns an address of this console: one that leads elsewhere becomes the first
// page. Browsers read a backslash as a slash, and drop control characters.
func place(next string) string {
	odd := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsFunc(next, odd) || strings.HasPrefix(next, "/sign-") {
		return "/"
	}
	return next
}

// signInAddress leads to sign-in and back: to the page, or to that from which a form or a
// script asked.
func signInAddress(r *http.Request) string {
	next := r.URL
	if r.Method != http.MethodGet || r.Header.Get("HX-Request") != "" {
		from, err := url.Parse(cmp.Or(r.Header.Get("HX-Current-URL"), r.Header.Get("Referer")))
		if next = from; err != nil {
			next = &url.URL{}
		}
	}
	return "/sign-in?next=" + url.QueryEscape(place(next.RequestURI()))
}
