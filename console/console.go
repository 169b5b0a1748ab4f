package console

import (
	"cmp"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/console/internal/page"
)

// Config says what a console shows, and whom it lets in. Admin is needed.
type Config struct {
	// Admin is the admin API, /admin/status and what is below it, which demands
	// AdminToken where that is set.
	Admin      http.Handler
	AdminToken string
	// API returns the delivery API, and nil while there is none.
	API func() http.Handler
	// Reason says what a reason means; ok is false for a name that is none. Nil: nothing is
	// known of reasons.
	Reason func(name string) (r Reason, ok bool)
	// Instance names this process among those that share a database.
	Instance string
	// Logger gets sign-ins. Nil means slog.Default().
	Logger *slog.Logger
}

// Reason is what there is to know of the reason of a decision.
type Reason struct {
	Name, Rule             string
	Means, Figures, Change string
	Settings               []string // keys of a policy file
	Guide                  string   // an address
}

// Console is the handler of all pages. It is safe for concurrent use.
type Console struct {
	Config
	pages    *page.Set
	sessions sessions
	groups   groups
	signIns  chan struct{} // those that are being checked
	streams  chan struct{} // those that are open

	beginning sync.Mutex // held while a redrive begins
}

//go:embed templates/*.html
var templates embed.FS

//go:embed static
var static embed.FS

// The bounds of a console.
const (
	maxStreams = 64      // pages that are live at once
	maxSignIns = 8       // tokens that are checked at once
	maxForm    = 4 << 20 // of a body, in bytes: a key may be settled with a response
)

// New returns the handler of a console. It serves all paths; what is not there has a page
// that says so.
func New(c Config) *Console {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	pages, err := page.Parse(templates, "templates/*.html", funcs)
	if err != nil {
		panic(err) // the templates are embedded: the tests parse them
	}
	return &Console{
		Config: c, pages: pages, sessions: sessions{of: map[digest]*session{}},
		signIns: make(chan struct{}, maxSignIns), streams: make(chan struct{}, maxStreams),
	}
}

// Handler returns what serves all pages.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	files, _ := fs.Sub(static, "static")
	mux.Handle("GET /static/", assets(http.StripPrefix("/static/", http.FileServerFS(files))))
	mux.HandleFunc("GET /sign-in", c.signInPage)
	mux.HandleFunc("POST /sign-in", c.signIn)
	mux.HandleFunc("POST /sign-out", c.signOut)
	mux.Handle("GET /{$}", c.view(c.now))
	mux.Handle("GET /now/live", c.stream(c.nowLive))
	mux.Handle("GET /now/{dependency}", c.view(c.dependency))
	mux.Handle("GET /now/{dependency}/live", c.stream(c.dependencyLive))
	mux.Handle("GET /why/{reason}", c.view(c.why))
	mux.Handle("GET /keys", c.view(c.keys))
	mux.Handle("POST /keys/find", c.view(c.findKey))
	mux.Handle("GET /keys/record", c.view(c.key))
	mux.Handle("POST /keys/settle", c.view(c.settleKey))
	mux.Handle("GET /dead-letters", c.view(c.deadLetters))
	mux.Handle("GET /dead-letters/{id}", c.view(c.letter))
	mux.Handle("POST /dead-letters/{id}/reveal", c.view(c.letter))
	mux.Handle("GET /dead-letters/redrive", c.view(c.redrive))
	mux.Handle("POST /dead-letters/redrive", c.view(c.redrive))
	mux.Handle("GET /dead-letters/discard", c.view(c.discard))
	mux.Handle("POST /dead-letters/discard", c.view(c.discard))
	mux.Handle("GET /redrives", c.view(c.redrives))
	mux.Handle("GET /redrives/{id}", c.view(c.redriveJob))
	mux.Handle("GET /redrives/{id}/live", c.stream(c.redriveLive))
	mux.Handle("POST /redrives/{id}/{act}", c.view(c.actOnJob))
	mux.Handle("GET /audit", c.view(c.audit))
	mux.Handle("GET /messages", c.view(c.messages))
	mux.Handle("GET /messages/{id}", c.view(c.message))
	mux.Handle("POST /messages/{id}/reveal", c.view(c.message))
	mux.Handle("GET /act/{act}", c.view(c.askAct))
	mux.Handle("POST /act/{act}", c.view(c.doAct))
	mux.Handle("GET /endpoints", c.view(c.endpoints))
	mux.Handle("GET /endpoints/{id}", c.view(c.endpoint))
	mux.Handle("POST /endpoints/{id}/{do}", c.view(c.actOnEndpoint))
	mux.Handle("/", c.view(func(*http.Request, *session) (*view, error) { return nil, errNoPage }))
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, nil, &problem{Status: http.StatusForbidden, Detail: "a browser sent this request from another site"})
	}))
	return headers(origin.Handler(http.MaxBytesHandler(mux, maxForm)))
}

// headers are on each response. The policy lets a page run the scripts and styles of this
// process alone, send forms to it alone, and stand in no frame.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
				"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// started is when this program was: its files are as old.
var started = time.Now().UTC().Format(http.TimeFormat)

// assets lets a browser keep scripts and styles, and ask whether they are the same still.
func assets(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") { // a folder, whose list is for no one
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Last-Modified", started)
		if r.Header.Get("If-Modified-Since") == started {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		next.ServeHTTP(w, r)
	})
}
