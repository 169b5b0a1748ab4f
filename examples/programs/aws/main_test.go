package main

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/examples/programs/internal/flaky"
	"github.com/forbear-go/forbear/internal/testkit/guide"
)

const message = "november.csv"

// respond is a bucket that takes everything and a queue that holds one message.
func respond(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	sum := md5.Sum([]byte(message)) // the SDK checks what the queue says it has received
	switch r.Header.Get("X-Amz-Target") {
	case "AmazonSQS.SendMessage":
		_ = json.NewEncoder(w).Encode(map[string]any{"MessageId": "1", "MD5OfMessageBody": hex.EncodeToString(sum[:])})
	case "AmazonSQS.ReceiveMessage":
		_ = json.NewEncoder(w).Encode(map[string]any{"Messages": []any{
			map[string]any{"MessageId": "1", "ReceiptHandle": "1", "Body": message, "MD5OfBody": hex.EncodeToString(sum[:])},
		}})
	}
}

func operation(r *http.Request) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target
	}
	return r.Method + " " + r.URL.Path
}

// TestAWS: a file of a megabyte and two calls of the queue, each sent three times
// with the same bytes.
func TestAWS(t *testing.T) {
	report := make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(report)
	file := filepath.Join(t.TempDir(), "november.csv")
	if err := os.WriteFile(file, report, 0o600); err != nil {
		t.Fatal(err)
	}
	server := flaky.New(t, httptest.NewServer, operation, respond)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1",
		"AWS_ENDPOINT_URL": server.URL, "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"REPORT": file, "QUEUE_URL": server.URL + "/1/reports.fifo",
	} {
		t.Setenv(name, value)
	}
	guide.Check(t, "sdks#AWS", main)

	const put = "PUT /reports/november.csv"
	for _, name := range []string{put, "AmazonSQS.SendMessage", "AmazonSQS.ReceiveMessage"} {
		sent := server.Attempts(t, name)
		if got := sent.Header.Get("Amz-Sdk-Request"); got != "attempt=1; max=1" {
			t.Errorf("%s: the SDK says %q: it must not retry by itself", name, got)
		}
		if name == put && !bytes.Equal(sent.Body, report) {
			t.Error("the bucket received other bytes than the file's")
		}
	}
	if server.Operations() != 3 {
		t.Errorf("%d operations, want three", server.Operations())
	}
}
