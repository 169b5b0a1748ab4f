package console

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// toSignIn fails where a response does not lead to sign-in.
func toSignIn(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if at := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasPrefix(at, "/sign-in?next=") {
		t.Errorf("%d to %q, want sign-in", w.Code, at)
	}
}

func TestOnThisMachineOneReadsWithoutAToken(t *testing.T) {
	f := newFake(t)
	holds(t, f.get("/"), http.StatusOK, "read only", `href="/sign-in"`)
	holds(t, f.get("http://[::1]:8081/"), http.StatusOK)
	holds(t, f.do(http.MethodPost, "/keys/settle", values("outcome", "undone", "why", "x")), http.StatusForbidden, "only read")
	for _, call := range f.calls {
		if !strings.HasPrefix(call, "GET ") {
			t.Errorf("someone without a token sent %s", call)
		}
	}
}

func TestOthersSignInFirst(t *testing.T) {
	f := newFake(t)
	toSignIn(t, f.get("http://console.example/"))
	toSignIn(t, f.get("http://127.0.0.1.example/"))
	for _, header := range []string{"X-Forwarded-For", "Forwarded", "Via", "Cf-Connecting-Ip"} {
		toSignIn(t, f.get("/", header, "x"))
	}
	old := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	old.ProtoMinor = 0
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, old)
	toSignIn(t, w)
	toSignIn(t, newFake(t, func(c *Config) { c.AdminToken = "secret-of-the-door" }).get("/"))
	delete(f.tokens, "") // the API demands one
	toSignIn(t, f.get("/"))
	if w := f.get("/?format=json"); w.Code != http.StatusUnauthorized || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("a program gets %d %s", w.Code, w.Body)
	}
}

func TestTheAPILearnsOfAProxyAndOfNothingElse(t *testing.T) {
	f := newFake(t)
	var seen []http.Header
	f.API = func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Header)
			f.ServeHTTP(w, r)
		})
	}
	f.signedIn(t, readerToken)
	seen = nil
	f.get("http://console.example:8081/", "X-Forwarded-For", "192.0.2.1", "Content-Encoding", "gzip", "X-Forbear-Actor", "eve", "Authorization", "Bearer other")
	if len(seen) == 0 {
		t.Fatal("the API was not asked")
	}
	h := seen[0]
	if len(h) != 3 || h.Get("Via") == "" || h.Get("X-Forbear-Actor") != "console" || h.Get("Authorization") != "Bearer "+readerToken {
		t.Errorf("the API sees %v", h)
	}
}

func TestEachTokenGivesItsRights(t *testing.T) {
	for _, who := range []struct {
		token, shown string
		write        bool
	}{
		{"secret-of-the-door", "<span>admin-token</span>", true},
		{adminToken, "<span>ada</span>", true},
		{readerToken, "<span>rea, read only</span>", false},
	} {
		f := newFake(t, func(c *Config) { c.AdminToken = "secret-of-the-door" }).signedIn(t, who.token)
		holds(t, f.get("/"), http.StatusOK, who.shown)
		f.answers["POST /v1/keys/settle"] = "{}"
		status := http.StatusForbidden
		if who.write {
			status = http.StatusSeeOther
		}
		holds(t, f.do(http.MethodPost, "/keys/settle", values("outcome", "undone", "why", "x")), status)
		if at := f.do(http.MethodPost, "/sign-out", nil).Header().Get("Location"); at != "/sign-in" {
			t.Errorf("signed out to %q", at)
		}
		toSignIn(t, f.get("/"))
	}
}

// The admin token opens the door; an API that demands tokens of its own refuses it, which
// is said, and does not lead to sign-in and back for ever.
func TestAdminTokenIsNoTokenOfDeliveries(t *testing.T) {
	f := newFake(t, func(c *Config) { c.AdminToken = "secret-of-the-door" }).signedIn(t, "secret-of-the-door")
	delete(f.tokens, "")
	holds(t, f.get("/"), http.StatusOK)
	holds(t, f.get("/keys"), http.StatusForbidden, "sign in with a token that forbear token create made")
}

func TestWrongTokenIsSlowAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		for token, text := range map[string]string{"secret-that-is-wrong": "not known", "": "not known", applicationToken: "for one application"} {
			f.log.Reset()
			left, leave := context.WithCancel(t.Context())
			leave() // who leaves is as slow, or would see by it that a token is wrong
			began := time.Now()
			r := httptest.NewRequestWithContext(left, http.MethodPost, "http://localhost/sign-in", strings.NewReader(url.Values{"token": {token}, "next": {"/keys"}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			f.handler.ServeHTTP(w, r)
			holds(t, w, http.StatusForbidden, text, `value="/keys"`)
			if took := time.Since(began); took != slowdown {
				t.Errorf("refused after %v, want %v", took, slowdown)
			}
			if !strings.Contains(f.log.String(), "console sign-in refused") || strings.Contains(f.log.String()+w.Body.String(), "secret") {
				t.Errorf("log %q, page %s", f.log.String(), w.Body)
			}
			if len(w.Result().Cookies()) > 0 {
				t.Error("a wrong token got a cookie")
			}
		}
		for range maxSignIns {
			go f.do(http.MethodPost, "/sign-in", url.Values{"token": {"wrong"}})
		}
		synctest.Wait()
		holds(t, f.do(http.MethodPost, "/sign-in", url.Values{"token": {adminToken}}), http.StatusTooManyRequests)
		time.Sleep(slowdown)
		synctest.Wait()
		f.signedIn(t, adminToken)
	})
}

func TestSessionCookieIsOfItsPort(t *testing.T) {
	f := newFake(t)
	for target, name := range map[string]string{"http://localhost:8081/sign-in": "__Host-forbear-8081", "http://console.example/sign-in": "__Host-forbear"} {
		w := f.do(http.MethodPost, target, url.Values{"token": {adminToken}})
		cookies := w.Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("cookies %v", cookies)
		}
		c := cookies[0]
		if c.Name != name || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 || len(c.Value) < 26 {
			t.Errorf("%+v", c)
		}
	}
	f.cookies["__Host-forbear-8082"] = f.cookies["__Host-forbear-8081"]
	toSignIn(t, f.get("http://console.example:8083/"))
	old := f.cookies["__Host-forbear-8081"]
	f.signedIn(t, readerToken)
	f.cookies["__Host-forbear-8081"] = old
	holds(t, f.get("/"), http.StatusOK, "<span>read only") // the session before has ended
}

func TestSessionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		times int
		good  bool
	}{
		"in use":         {sessionIdle, 11, true},
		"idle":           {sessionIdle + 1, 1, false},
		"after its time": {sessionIdle, 13, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, func(c *Config) { c.AdminToken = "secret-of-the-door" }).signedIn(t, adminToken)
				var w *httptest.ResponseRecorder
				for range c.times {
					time.Sleep(c.every)
					w = f.get("/")
				}
				if good := w.Code == http.StatusOK; good != c.good {
					t.Errorf("after %d times %v: %d", c.times, c.every, w.Code)
				}
			})
		})
	}
}

func TestRevokedTokenEndsItsSession(t *testing.T) {
	f := newFake(t, func(c *Config) { c.AdminToken = "secret-of-the-door" }).signedIn(t, adminToken)
	delete(f.tokens, adminToken)
	toSignIn(t, f.get("/"))
	f.tokens[adminToken] = `{"name":"ada","scope":"admin"}`
	toSignIn(t, f.get("/")) // the session is gone
	f.signedIn(t, adminToken).tokens[adminToken] = `{"name":"ada","scope":"read-only"}`
	holds(t, f.do(http.MethodPost, "/keys/settle", values("outcome", "undone", "why", "x")), http.StatusForbidden)
}

// The holder of the admin token, who is elsewhere, writes localhost as the host. The delivery
// API, which is not beyond this machine and demands no token, must learn of it.
func TestNameOfThisMachineFromElsewhere(t *testing.T) {
	f := newFake(t, func(c *Config) { c.AdminToken = "secret-of-the-door" }).signedIn(t, "secret-of-the-door")
	for peer, want := range map[string]bool{"192.0.2.1:5000": true, "127.0.0.1:5000": false, "[::1]:5000": false} {
		var via bool
		f.API = func() http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { via = r.Header.Get("Via") != "" })
		}
		r := httptest.NewRequest(http.MethodGet, "http://localhost:8081/messages", nil)
		r.AddCookie(&http.Cookie{Name: "__Host-forbear-8081", Value: f.cookies["__Host-forbear-8081"]})
		r.RemoteAddr = peer
		f.handler.ServeHTTP(httptest.NewRecorder(), r)
		if via != want {
			t.Errorf("from %s: the API sees a proxy %v, want %v", peer, via, want)
		}
	}
}

// Forms that never end must not keep others from signing in.
func TestSlowFormHoldsNoPlaceOfSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		body, more := io.Pipe()
		for range maxSignIns {
			r := httptest.NewRequest(http.MethodPost, "http://localhost:8081/sign-in", body)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			go f.handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		synctest.Wait()
		f.signedIn(t, adminToken)
		_ = more.Close()
		time.Sleep(slowdown)
	})
}

// What happens now is seen above all while the database is away.
func TestDatabaseThatIsAwayHidesNoFigures(t *testing.T) {
	f := newFake(t).signedIn(t, adminToken)
	f.tokens[adminToken] = "503 {}"
	holds(t, f.get("/"), http.StatusOK, "ada, read only")
	f.tokens[""] = "503 {}"
	f.cookies = nil
	holds(t, f.get("/"), http.StatusServiceUnavailable) // whether one is demanded is not known
}

func TestNextLeadsNowhereElse(t *testing.T) {
	for next, want := range map[string]string{
		"/keys?state=all": "/keys?state=all", "": "/", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/", "/\t/evil.example": "/", "/\n/evil.example": "/",
		"javascript:alert(1)": "/", "/sign-in?next=/": "/", "/sign-out": "/", "keys": "/",
	} {
		f := newFake(t)
		w := f.do(http.MethodPost, "/sign-in", url.Values{"token": {adminToken}, "next": {next}})
		if at := w.Header().Get("Location"); at != "/sign-in?again&next="+url.QueryEscape(want) {
			t.Errorf("%q: to %q", next, at)
		}
		if at := f.get("/sign-in?again&next=" + url.QueryEscape(next)).Header().Get("Location"); at != want {
			t.Errorf("%q: to %q, want %q", next, at, want)
		}
		f.cookies = nil
		holds(t, f.get("/sign-in?again&next="+url.QueryEscape(next)), http.StatusOK, "did not keep the session")
	}
}

func TestSignInLeadsBack(t *testing.T) {
	f := newFake(t, func(c *Config) { c.AdminToken = "secret-of-the-door" })
	for name, w := range map[string]*httptest.ResponseRecorder{
		"page":   f.get("/keys?state=all"),
		"form":   f.do(http.MethodPost, "/keys/settle", url.Values{}, "Referer", "http://localhost:8081/keys?state=all"),
		"script": f.do(http.MethodPost, "/keys/settle", url.Values{}, "HX-Request", "true", "HX-Current-URL", "http://localhost:8081/keys?state=all"),
	} {
		if at := w.Header().Get("Location") + w.Header().Get("HX-Redirect"); at != "/sign-in?next=%2Fkeys%3Fstate%3Dall" {
			t.Errorf("%s: to %q", name, at)
		}
	}
}

func TestOtherSitesSendNothing(t *testing.T) {
	f := newFake(t).signedIn(t, adminToken)
	f.calls = nil
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		holds(t, f.do(http.MethodPost, "/keys/settle", values("outcome", "undone", "why", "x"), header...), http.StatusForbidden, "another site")
		holds(t, f.do(http.MethodPost, "/sign-in", url.Values{"token": {adminToken}}, header...), http.StatusForbidden)
	}
	if len(f.calls) > 0 {
		t.Errorf("calls %q", f.calls)
	}
}

func TestHeadersAreOnEachResponse(t *testing.T) {
	f := newFake(t)
	f.answers["GET /v1/keys"] = "500 {}"
	for name, w := range map[string]*httptest.ResponseRecorder{
		"page": f.get("/"), "json": f.get("/?format=json"), "sign-in": f.get("/sign-in"), "no page": f.get("/nothing"), "failure": f.get("/keys"), "text": f.get("/keys", "HX-Request", "true"),
		"refused": f.do(http.MethodPost, "/sign-out", nil, "Origin", "https://evil.example"), "elsewhere": f.get("http://console.example/"), "other path": f.get("/a/../keys"),
		"file": f.get("/static/console.css"), "no file": f.get("/static/nothing"),
	} {
		h := w.Header()
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "form-action 'self'") || !strings.Contains(policy, "base-uri 'none'") {
			t.Errorf("%s: policy %q", name, policy)
		}
		if h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: %v", name, h)
		}
		if keep := h.Get("Cache-Control"); keep != "no-store" && !strings.HasSuffix(name, "file") {
			t.Errorf("%s: Cache-Control %q", name, keep)
		}
	}
}

func TestFoldersAreNotListed(t *testing.T) {
	f := newFake(t)
	for _, path := range []string{"/static/", "/static/vendor/"} {
		if w := f.get(path); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), ".js") {
			t.Errorf("%s: %d, %.100s", path, w.Code, w.Body)
		}
	}
}

func TestWhatWasDoneIsSaidOnceAndAsText(t *testing.T) {
	f := newFake(t)
	f.cookies["__Host-forbear-8081-said"] = url.QueryEscape("<b>done</b>")
	holds(t, f.get("/"), http.StatusOK, `aria-live="polite">&lt;b&gt;done&lt;/b&gt;</div>`)
	holds(t, f.get("/"), http.StatusOK, `aria-live="polite"></div>`)
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		ctx, leave := context.WithCancel(t.Context())
		open := func(w http.ResponseWriter) {
			f.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:8081/now/live", nil))
		}
		for range maxStreams {
			go open(httptest.NewRecorder())
			synctest.Wait()
		}
		w := httptest.NewRecorder()
		open(w)
		holds(t, w, http.StatusOK, "event: end\ndata: Too many live pages")
		leave()
		synctest.Wait()
		ctx, leave = context.WithCancel(t.Context())
		w = httptest.NewRecorder()
		go open(w)
		synctest.Wait()
		f.mu.Lock()
		f.tokens = nil // what it reads by is no longer good
		f.mu.Unlock()
		time.Sleep(liveEvery)
		synctest.Wait()
		if !strings.Contains(w.Body.String(), "event: end") {
			t.Errorf("a stream goes on: %s", w.Body)
		}
		leave()
	})
}

// No token, key, reason or body of a request is in a log, also when the API fails.
func TestLogsHoldNoSecrets(t *testing.T) {
	f := newFake(t).signedIn(t, adminToken)
	secrets := values("outcome", "done", "why", "secret-why", "status", "200", "body", "secret-body", "headers", "A: secret-header")
	for _, answer := range []string{"{}", "500 {}", "409 {}", "not json secret-response"} {
		for _, call := range []string{"POST /v1/keys/settle", "POST /v1/keys/find", "GET /v1/keys"} {
			f.answers[call] = answer
		}
		f.get("/keys?scope=secret-scope")
		f.do(http.MethodPost, "/keys/settle", secrets)
		f.do(http.MethodPost, "/keys/find", url.Values{"key": {"secret-key"}})
	}
	if text := f.log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "console sign-in") {
		t.Errorf("log: %s", text)
	}
}
