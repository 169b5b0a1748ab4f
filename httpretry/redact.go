package httpretry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// redacted returns err with a text that may be logged. What a transport below
// says can hold the URL with its query and password (an inner http.Client says
// so with each error), and net/http quotes what it could not read of a response.
// Type, wrapping and methods of the original are still there for errors.Is and
// errors.As; only what is printed changes, and only when it must.
func redacted(req *http.Request, err error) error {
	if err == nil {
		return nil
	}
	var text string
	if quotesResponse(err) {
		text = "malformed HTTP response"
	} else {
		text = without(err.Error(), secretsOf(req, err))
	}
	if isText(err) {
		text = quotation.ReplaceAllStringFunc(text, func(quoted string) string {
			if own(req, quoted) {
				return quoted
			}
			return `"[redacted]"`
		})
	}
	if text == err.Error() {
		return err
	}
	return &redactedError{text: text, err: err}
}

// redactedError is an error under another text.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// minSecret is the length from which a value is looked for by itself. Shorter
// ones would be found everywhere; they are still removed as part of a URL.
const minSecret = 6

// secretsOf lists what of the URLs in play and of the request's credentials
// must not be printed, the longest first.
func secretsOf(req *http.Request, err error) (secrets []string) {
	alone := func(value string) {
		if len(value) >= minSecret {
			secrets = append(secrets, value)
		}
	}
	add := func(u *url.URL) {
		if u == nil {
			return
		}
		if u.User != nil {
			secrets = append(secrets, u.User.String()+"@")
			password, _ := u.User.Password()
			alone(password)
		}
		if u.RawQuery != "" {
			secrets = append(secrets, "?"+u.RawQuery)
			alone(u.RawQuery)
		}
		for _, values := range u.Query() {
			for _, v := range values {
				alone(v)
				alone(url.QueryEscape(v))
			}
		}
	}
	add(req.URL)
	if e, ok := errors.AsType[*url.Error](err); ok {
		if u, err := url.Parse(e.URL); err == nil {
			add(u)
		} else {
			secrets = append(secrets, e.URL) // its parts cannot be told apart
		}
	}
	for _, name := range [...]string{headerAuthorization, "Proxy-Authorization", "Cookie"} {
		for _, v := range req.Header[name] {
			alone(v)
			_, token, _ := strings.Cut(v, " ")
			alone(token)
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// without returns text with each of the secrets blotted out.
func without(text string, secrets []string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}

// quotesResponse reports whether err is net/textproto's word on a header that it
// could not read, which holds that header.
func quotesResponse(err error) bool {
	_, ok := errors.AsType[textproto.ProtocolError](err)
	return ok
}

// quotation matches a string as %q writes it, which is how net/http quotes what
// came from the wire.
var quotation = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// own reports whether a quotation is of the request itself and no secret: the scheme that
// net/http does not know is the best hint at an address without one ("localhost:8080").
func own(req *http.Request, quoted string) bool {
	text, err := strconv.Unquote(quoted)
	return err == nil && text != "" && (text == req.URL.Scheme || text == req.URL.Host || text == req.Method)
}

// textTypes are the types of errors that are nothing but text.
var textTypes = []reflect.Type{reflect.TypeOf(errors.New("")), reflect.TypeOf(fmt.Errorf("%d", 0))}

// isText reports whether err comes down to an error that is nothing but text,
// made on the spot. What such a text quotes came from the wire: net/http says so
// of status lines and lengths that it could not read.
func isText(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return isText(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), isText)
	}
	return slices.Contains(textTypes, reflect.TypeOf(err))
}

// RedactLog returns a writer for [log.SetOutput] that writes to w. net/http has no
// logger but that of package log, and when a server says something out of turn on an
// idle connection, it prints there what was said. Such a line is passed on without
// it; every other one as it is. The writer is as safe for concurrent use as w.
//
//	log.SetOutput(httpretry.RedactLog(os.Stderr))
func RedactLog(w io.Writer) io.Writer { return redactedLog{w} }

type redactedLog struct{ io.Writer }

// unsolicited is how net/http begins to say so.
var unsolicited = []byte("Unsolicited response received on idle HTTP channel")

// Write gets a whole line, as package log promises.
func (l redactedLog) Write(line []byte) (int, error) {
	at := bytes.Index(line, unsolicited)
	if at < 0 {
		return l.Writer.Write(line)
	}
	short := append(bytes.Clone(line[:at+len(unsolicited)]), " [redacted]\n"...)
	if _, err := l.Writer.Write(short); err != nil {
		return 0, err
	}
	return len(line), nil
}
