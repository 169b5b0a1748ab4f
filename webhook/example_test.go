package webhook_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// Receive webhooks: check the signature over the body as it came, and
// recognise duplicates by the id.
func ExampleVerify() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	seen := map[string]bool{}
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		id := r.Header.Get("Webhook-Id")
		err = webhook.Verify(secret, id, r.Header.Get("Webhook-Timestamp"), r.Header.Get("Webhook-Signature"), body, time.Now())
		if errors.Is(err, webhook.ErrSignature) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if err != nil { // an unusable secret
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if !seen[id] {
			seen[id] = true
			fmt.Printf("%s: %s\n", id, body)
		}
		w.WriteHeader(http.StatusNoContent)
	}
	const id, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	var signer webhook.Signer
	if err := signer.Add(secret); err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for _, signature := range []string{signer.Sign(id, now, []byte(body)), "v1,forged"} {
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
		r.Header.Set("Webhook-Id", id)
		r.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		r.Header.Set("Webhook-Signature", signature)
		w := httptest.NewRecorder()
		handler(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// msg_p5jXN8AQM9LWM0D4loKWxJek: {"test": 2432232314}
	// 204
	// 401
}

// Keep webhooks away from the inside of a network. It is the address that is
// looked at, after names were resolved, whatever its spelling.
func ExampleGuard() {
	guard := webhook.Guard{}
	for _, address := range []string{"https://example.com/hook", "http://169.254.169.254/latest/meta-data", "http://0x7f.1/", "https://user:password@example.com/"} {
		fmt.Println(guard.CheckURL(address))
	}
	// Output:
	// <nil>
	// address not allowed: 169.254.169.254 is not public
	// address not allowed: host "0x7f.1" is a disguised number: write the IP address or a name
	// invalid url: it has credentials: put them into auth
}
