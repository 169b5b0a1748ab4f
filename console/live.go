package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/console/internal/page"
)

const (
	liveEvery = time.Second
	liveWrite = 10 * time.Second // for a page to take an event
)

// stream serves the events of a live page (WHATWG HTML, server-sent events). look returns
// the parts of the page as they are now, by the ids of their elements. A part that has
// changed is sent; the page puts it into its place, and no other. It ends when the reader
// leaves, or is let in no more.
func (c *Console) stream(begin func(*http.Request, *session) (look func() (map[string]page.Markup, error), err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case c.streams <- struct{}{}:
			defer func() { <-c.streams }()
		default:
			c.fail(w, r, nil, errBusy)
			return
		}
		s, err := c.admit(r)
		if err != nil {
			c.fail(w, r, s, err)
			return
		}
		look, err := begin(r, s)
		if err != nil {
			c.fail(w, r, s, err)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		out, shown := http.NewResponseController(w), map[string]page.Markup{}
		tick := time.NewTicker(liveEvery)
		defer tick.Stop()
		for {
			parts, err := look()
			if err != nil {
				return // the browser comes again, and sees what is wrong by a page
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
				return
			}
		}
	})
}

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
	return fmt.Sprintf("event: parts\ndata: %s\n\n", strings.NewReplacer("\r", " ", "\n", " ").Replace(changed.String()))
}
