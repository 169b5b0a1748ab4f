package examples

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/guide"
)

// Two retries of a GET, one of a payment that is booked once, and none where the server
// asks for more time than there is.
func TestHTTP(t *testing.T) {
	printed := example(t, "http").ends(t)
	has(t, printed, map[string]int{
		`GET /orders/17 200 OK {"order": 17, "open": true}`: 1,
		`POST /payments 200 OK {"payment": 1}`:              1,
		"  service: 503":                                    2,
		"payment booked":                                    1,
		"this key is known":                                 1,
		"come back in two minutes":                          1,
		"WARN retry":                                        3,
		"reason=after_exceeds_deadline":                     1,
		"asked for a wait of 2m0s (R-5) after 1 attempt":    1,
	})
}

// A mail after three attempts, with the types of the server's own replies in the log; and
// no second attempt where the mailbox is not there.
func TestDo(t *testing.T) {
	printed := example(t, "do").ends(t)
	has(t, printed, map[string]int{
		"ann@example.com has mail after 3 attempts":     1,
		"took a mail, Subject: order 17":                1,
		"error_type=smtp_421":                           1,
		"error_type=smtp_450":                           1,
		"550 no such mailbox":                           1,
		"no-one@example.com: not sent, terminal by R-4": 1,
		"WARN retry":                                    2,
	})
}

// The payment is made once, although its first response is lost. The guide shows the
// program, and what it prints.
func TestGRPC(t *testing.T) {
	p := example(t, "grpc")
	has(t, p.ends(t), map[string]int{"WARN retry": 1, "error_type=grpc_UNAVAILABLE": 1})
	guide.Holds(t, "grpc-keys", "grpc/main.go", p.output())
	key := regexp.MustCompile(`idempotency_key=[0-9a-f-]{36}`)
	if !key.MatchString(p.printed()) {
		t.Error("the retry has no key")
	}
}

// The message of the order that was committed arrives, after a retry; that of the order
// that was rolled back does not.
func TestOutbox(t *testing.T) {
	dir := t.TempDir()
	p := example(t, "outbox", "TMPDIR="+dir, "DATABASE_URL=")
	has(t, p.ends(t), map[string]int{"WARN retry": 1, "dependency=webhook:acme": 1, "order-2": 0})
	const want = `outbox: unknown endpoint "acne"
1 order is shipped
acme responds 503 to order-1-shipped {"order":1}
acme takes order-1-shipped {"order":1}
`
	if got := p.output(); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || left != nil {
		t.Errorf("it left %v, %v", left, err)
	}
}
