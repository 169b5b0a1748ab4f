package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/console/internal/page"
)

const (
	liveEvery = 2 * time.Second
	liveWrite = 10 * time.Second // for a page to take an event
)

// look returns the parts of a page as they are now, by the ids of their elements.
type look func(*session) (map[string]page.Markup, error)

// stream serves the events of a live page (WHATWG HTML, server-sent events). A part that has
// changed is sent; the page puts it into its place, and no other. It ends when the reader
// leaves, or is let in no more.
func (c *Console) stream(begin func(*http.Request) look) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		err := error(errBusy)
		select {
		case c.streams <- struct{}{}:
			defer func() { <-c.streams }()
			err = c.follow(w, r, begin(r))
		default:
		}
		if err != nil {
			_, _ = w.Write(ended(err))
		}
	})
}

// follow sends what changes, until there is an error or the reader leaves.
func (c *Console) follow(w http.ResponseWriter, r *http.Request, look look) error {
	out, shown := http.NewResponseController(w), map[string]page.Markup{}
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		s, err := c.admit(r)
		if err != nil {
			return err
		}
		parts, err := look(s)
		if err != nil {
			return err
		}
		_ = out.SetWriteDeadline(time.Now().Add(liveWrite))
		if _, err := w.Write([]byte(event(parts, shown))); err != nil || out.Flush() != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return nil
		}
	}
}

// ended returns the event after which a page does not open the stream again: it would go
// on asking in vain.
func ended(err error) []byte {
	why := "Live figures have ended: reload the page."
	if p, ok := errors.AsType[*problem](err); ok {
		why = p.Error()
	}
	return fmt.Appendf(nil, "event: end\ndata: %s\n\n", oneLine.Replace(why))
}

// oneLine keeps a text to the one line that is the data of an event.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// event returns the event of the parts that are not as shown, and notes them there. With
// none it is a comment, by which a reader who has left is noticed.
func event(parts, shown map[string]page.Markup) string {
	var changed strings.Builder
	for id, part := range parts {
		if shown[id] != part {
			shown[id] = part
			changed.WriteString(string(part))
		}
	}
	if changed.Len() == 0 {
		return ":\n\n"
	}
	return fmt.Sprintf("event: parts\ndata: %s\n\n", oneLine.Replace(changed.String()))
}
