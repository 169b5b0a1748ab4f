package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// template is in the ids of rows that are multiplied and then removed.
const template = "template"

// failingEvery is how many endpoints there are for each that has dead letters.
const failingEvery = 20

// marks are times in templates, in whose place each row has its own.
var marks = func() (list [4]time.Time) { // accepted, and three attempts
	for i := range list {
		list[i] = time.Date(2001, 1, 1, 0, 0, i, 0, time.UTC)
	}
	return list
}()

// fault is why an endpoint fails.
type fault struct {
	reason    reason.Reason
	class     forbear.Class
	errorType string
	status    int
	error     string
	chain     []string
}

var faults = []fault{
	{reason.Exhausted, forbear.ClassTransient, "http_503", 503, "http 503: the receiver is being deployed", []string{"*httpretry.StatusError"}},
	{reason.Exhausted, forbear.ClassTimeout, "timeout", 0, "Post: context deadline exceeded", []string{"*url.Error", "context.deadlineExceededError"}},
	{reason.Terminal, forbear.ClassTerminal, "http_400", 400, "http 400: unknown field currency", []string{"*httpretry.StatusError"}},
	{reason.Terminal, forbear.ClassTerminal, "http_404", 404, "http 404", []string{"*httpretry.StatusError"}},
	{reason.Exhausted, forbear.ClassTransient, "connection_refused", 0, "dial tcp 203.0.113.7:443: connect: connection refused", []string{"*url.Error", "*net.OpError", "*os.SyscallError", "syscall.Errno"}},
}

// kinds are those of messages: each a type and an example.
var kinds = []struct{ name, payload string }{
	{"order.created", `{"id":9007199254740993,"order":"A-4711","customer":{"id":77,"name":"Müller & Søn <GmbH>"},"lines":[{"sku":"0042","quantity":3,"price":"19.90"},{"sku":"0815","quantity":1,"price":"249.00"}],"total":"308.70","currency":"EUR","placed_at":"2026-11-30T08:00:00Z"}`},
	{"order.paid", `{"order":"A-4711","payment":{"method":"card","amount":"308.70","currency":"EUR","authorization":"a8f5f167f44f4964"},"paid_at":"2026-11-30T08:00:07Z","risk":{"score":0.03,"rules":["velocity","country"]}}`},
	{"invoice.issued", `{"invoice":"2026-118822","order":"A-4711","due":"2026-12-14","lines":12,"net":"259.41","vat":"49.29","gross":"308.70","document":"https://documents.example/2026-118822.pdf"}`},
	{"shipment.sent", `{"shipment":"S-99120","order":"A-4711","carrier":"postal","tracking":"00340434161094042557","parcels":[{"weight":1.2,"size":[30,20,10]}],"sent_at":"2026-11-30T15:30:00Z"}`},
}

// rare is a type that one message in 100,000 has, and keyOfAll how keys begin.
const (
	rare     = "audit.rare"
	keyOfAll = "customer-"
)

// templates writes one row of each kind.
func (s *seeding) templates(ctx context.Context, db *sqlstore.DB) error {
	endpoint := webhook.Endpoint{ID: template, URL: "https://" + template + ".example/hooks", Secrets: []string{"whsec_" + strings.Repeat("c2VlZA", 6)}}
	stuck := webhook.Endpoint{ID: Stuck, URL: s.StuckURL, Unsigned: true}
	for _, e := range []webhook.Endpoint{endpoint, stuck} {
		if _, err := db.Webhooks().PutEndpoint(ctx, e); err != nil {
			return err
		}
	}
	if err := db.Webhooks().SetEndpointState(ctx, Stuck, webhook.Enabled, webhook.ByForbear, "", s.now.Add(-20*time.Hour)); err != nil {
		return err
	}
	var messages []webhook.Message
	for _, k := range append(kinds[:len(kinds):len(kinds)], struct{ name, payload string }{rare, `{"rare":true}`}) {
		messages = append(messages, webhook.Message{
			ID: template + k.name, Endpoints: []string{template}, Type: k.name, Source: "https://shop.example", Key: keyOfAll + template, ContentType: "application/json", Body: []byte(k.payload),
		})
	}
	if _, err := db.Webhooks().Accept(ctx, messages, nil); err != nil {
		return err
	}
	if err := s.letters(ctx, db); err != nil {
		return err
	}
	j := queue.Job{
		ID: template, Filter: queue.Filter{Queue: webhook.Queue, Destination: endpointID(1)}, By: "ada at 127.0.0.1", Rate: 10, StopRatio: 0.5, MaxRedrives: 3,
		State: queue.JobDone, Updated: s.now, Total: 20, Begun: 20, Delivered: 19, Failing: 1,
	}
	if err := db.DeadLetters().PutJob(ctx, j); err != nil {
		return err
	}
	return keys(ctx, db.Idempotency())
}

// letters writes a dead letter of each endpoint that fails, whose fault has a fingerprint of its own.
func (s *seeding) letters(ctx context.Context, db *sqlstore.DB) error {
	var group sync.WaitGroup
	errs := make(chan error, s.Endpoints/failingEvery+1)
	put := func(endpoint string, f fault) {
		group.Go(func() { errs <- db.DeadLetters().Put(ctx, letter(endpoint, f)) })
	}
	put(Stuck, faults[0])
	for i := failingEvery; i <= s.Endpoints; i += failingEvery {
		put(endpointID(i), faults[i/failingEvery%len(faults)])
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// letter is a dead letter as the dispatcher makes it.
func letter(endpoint string, f fault) deadletter.Letter {
	l := deadletter.Letter{
		ID: template + endpoint, Queue: webhook.Queue, Destination: endpoint, EventID: "msg_" + template, Type: kinds[0].name, Source: "https://shop.example",
		PartitionKey: keyOfAll + template, IdempotencyKey: "msg_" + template, CorrelationID: "msg_" + template, Payload: []byte(kinds[0].payload), ContentType: "application/json",
		PolicyVersion: "v1-44136fa3", Reason: f.reason.String(), ErrorType: f.errorType, Status: f.status, Error: f.error, Chain: f.chain, Attempts: 3, MaxAttempts: 3,
		EnqueuedAt: marks[0], FirstAttempt: marks[1], LastAttempt: marks[3], DeadAt: marks[3], State: deadletter.Dead,
		Description: fmt.Sprintf("%s (%s) after 3 attempts", f.reason, f.errorType),
	}
	for n := 1; n <= 3; n++ {
		l.History = append(l.History, deadletter.Attempt{
			Number: n, Claim: n, Due: marks[n], At: marks[n], Took: 120 * time.Millisecond, ErrorType: f.errorType, Status: f.status,
			Class: f.class.String(), Error: f.error, Chain: f.chain, Worker: "seed",
		})
	}
	return l
}

// cause is the column of an attempt that failed.
func (f fault) cause() string {
	return text(map[string]any{"class": f.class.String(), "error": f.error, "chain": f.chain})
}

// progress is that of a delivery that has failed three times.
func (f fault) progress() string {
	return text(edge.Progress{Attempts: 3, State: forbear.State{Attempt: 4, Start: marks[0]}, Last: f.errorType})
}

// counts are those of a slot: of an endpoint that fails, or of one that does not.
func counts(fails bool) string {
	var c store.Counts
	for i := range 20 {
		status := http.StatusOK
		if fails && i%2 == 0 {
			status = http.StatusServiceUnavailable
		}
		c.Add(status, time.Duration(30+i*9)*time.Millisecond)
	}
	return text(c)
}

// text is the JSON of what always has one.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// keys writes an idempotency record that is held, and one that is completed.
func keys(ctx context.Context, records *sqlstore.Idempotency) error {
	for _, state := range []idempotency.State{idempotency.Held, idempotency.Completed} {
		c := idempotency.Claim{
			ID: idempotency.ID{Scope: template, Key: idempotency.Digest(string(state))}, Fingerprint: idempotency.Digest("fingerprint"), Operation: "POST /charges",
			Owner: template, Lease: time.Minute, Retention: 48 * time.Hour,
		}
		v, err := records.Claim(ctx, c)
		if err != nil {
			return err
		}
		token := idempotency.Token{ID: c.ID, Owner: c.Owner, Fence: v.Record.Fence}
		if state == idempotency.Held {
			err = records.Hold(ctx, token, "the service broke off: unexpected EOF")
		} else {
			err = records.Complete(ctx, token, idempotency.Response{Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"charge":"ch_1"}`)}, 48*time.Hour)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
