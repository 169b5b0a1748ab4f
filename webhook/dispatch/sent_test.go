package dispatch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// The producer's id may have dots. The webhook-id then has none, is the same in every
// attempt, and is what was signed; the key and the CloudEvents id stay the producer's.
func TestIDWithDotsIsSentWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, v := webhook.NewSecret(), &received{}
		r := newRig(t, v, webhook.Endpoint{Secrets: []string{secret}, Format: webhook.FormatBinary})
		sent := ""
		for attempt := range 3 {
			j := r.job()
			j.delivery.Message.ID = "com.example.order.4711"
			if attempt == 2 {
				j.delivery.Letter = "dlq_1" // a redrive
			}
			r.process(j)
			id := v.header.Get("Webhook-Id")
			if strings.Contains(id, ".") || sent != "" && id != sent {
				t.Errorf("attempt %d has the id %q, the one before %q", attempt, id, sent)
			}
			sent = id
			if names := v.signers(map[string]string{"its own": secret}); len(names) != 1 || names[0] != "its own" {
				t.Errorf("the signatures are by %v", names)
			}
			for _, name := range []string{"Idempotency-Key", "Ce-Id"} {
				if got := v.header.Get(name); got != "com.example.order.4711" {
					t.Errorf("%s is %q", name, got)
				}
			}
			time.Sleep(time.Minute)
		}
		j := r.job()
		if r.process(j); v.header.Get("Webhook-Id") != "m" {
			t.Errorf("an id without dots goes out as %q", v.header.Get("Webhook-Id"))
		}
	})
}
