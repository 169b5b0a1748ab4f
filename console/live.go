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

// stream serves the events of a live page (WHATWG HTML, server-sent events). look returns
// the parts of the page as they are now, by the ids of their elements. A part that has
// changed is sent; the page puts it into its place, and no other. It ends when the reader
// leaves, or is let in no more.
func (c *Console) stream(begin func(*http.Request, *session) (look func() (map[string]page.Markup, error), err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		select {
		case c.streams <- struct{}{}:
			defer func() { <-c.streams }()
		default:
			_, _ = w.Write(ended(errBusy))
			return
		}
		s, err := c.admit(r)
		if err != nil {
			_, _ = w.Write(ended(err))
			return
		}
		look, err := begin(r, s)
		if err != nil {
			_, _ = w.Write(ended(err))
			return
		}
		out, shown := http.NewResponseController(w), map[string]page.Markup{}
		tick := time.NewTicker(liveEvery)
		defer tick.Stop()
		for {
			parts, err := look()
			if err != nil {
				_, _ = w.Write(ended(err))
				return
			}
			_ = out.SetWriteDeadline(time.Now().Add(liveWrite))
			if _, err := w.Write([]byte(event(parts, shown))); err != nil || out.Flush() != nil {
				return
			}
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
			if _, err := c.admit(r); err != nil {
				_, _ = w.Write(ended(err))
				return
			}
		}
	})
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
