package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/forbear-go/forbear/console/internal/page"
)

// view is what a page shows. Data is its JSON, too.
type view struct {
	Title    string
	Tab      string // the address of the tab that it is under
	Template string
	Data     any
	// Status is 200 unless it says otherwise.
	Status int
	// Location, where set, is another page that shows what has been done.
	Location string
	// Said is said on that page once: what has been done.
	Said string
}

// frame is what goes around a page.
type frame struct {
	*view
	Session  *session
	Instance string
	Said     string
	Content  page.Markup
	Query    url.Values
}

// shown is what a template gets: the data of a page, and who looks at it.
type shown struct {
	Data    any
	Session *session
	Query   url.Values
}

// view serves a page to those who are let in. Writes go through it as well: they return
// the page that shows what was done.
func (c *Console) view(make func(*http.Request, *session) (*view, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := c.admit(r)
		if err == nil && r.Method != http.MethodGet && r.Method != http.MethodHead && !s.Write {
			err = errReader
		}
		var v *view
		if err == nil {
			v, err = make(r, s)
		}
		if err != nil {
			c.fail(w, r, s, err)
			return
		}
		if v.Location != "" {
			said(w, r, v.Said)
			http.Redirect(w, r, v.Location, http.StatusSeeOther)
			return
		}
		c.write(w, r, max(v.Status, http.StatusOK), s, v)
	})
}

// write writes a page, or its data where JSON is wanted.
func (c *Console) write(w http.ResponseWriter, r *http.Request, status int, s *session, v *view) {
	if wantsJSON(r) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v.Data)
		return
	}
	content, err := c.pages.Execute(v.Template, shown{v.Data, s, r.URL.Query()})
	if err == nil {
		content, err = c.pages.Execute("frame", frame{v, s, c.Instance, hear(w, r), content, r.URL.Query()})
	}
	if err != nil {
		c.Logger.Error("a page of the console cannot be written", "page", v.Template, "error", err.Error())
		http.Error(w, "This page cannot be written: see the log.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(content))
}

// fail writes what is wrong: to a script as text, which it shows beside the page that is
// there, to a program as JSON, and else as a page. Someone who has to sign in first is led
// there, and back.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, s *session, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		c.Logger.Error("a page of the console failed", "page", r.URL.Path, "error", err.Error())
		p = &problem{Status: http.StatusInternalServerError, Detail: "Something is wrong in this process: see its log."}
	}
	signIn := p.Status == http.StatusUnauthorized && !wantsJSON(r)
	switch {
	case signIn && r.Header.Get("HX-Request") != "":
		w.Header().Set("HX-Redirect", signInAddress(r))
		w.WriteHeader(p.Status)
	case signIn:
		http.Redirect(w, r, signInAddress(r), http.StatusSeeOther)
	case r.Header.Get("HX-Request") != "":
		http.Error(w, p.Error(), p.Status)
	default:
		c.write(w, r, p.Status, s, &view{Title: http.StatusText(p.Status), Template: "problem", Data: p})
	}
}

// wantsJSON reports whether a program asks.
func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.HasPrefix(r.Header.Get("Accept"), "application/json")
}

// saidCookie is the name of the cookie that carries what was done to the next page.
func saidCookie(r *http.Request) string { return cookie(r) + "-said" }

func said(w http.ResponseWriter, r *http.Request, text string) {
	if text != "" {
		http.SetCookie(w, &http.Cookie{Name: saidCookie(r), Value: url.QueryEscape(text), Path: "/", MaxAge: 60, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	}
}

// hear returns what was done, and forgets it.
func hear(w http.ResponseWriter, r *http.Request) string {
	said, err := r.Cookie(saidCookie(r))
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: said.Name, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true})
	text, _ := url.QueryUnescape(said.Value)
	return text
}
