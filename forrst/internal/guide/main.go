// Command guide is the program of docs/guides/forrst.md.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forrst"
)

// charges is a Forrst server that is busy twice.
type charges struct{ calls int }

func (c *charges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req forrst.Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		_ = forrst.WriteError(w, "", nil, forrst.Error{Code: "PARSE_ERROR", Message: "not a request"})
		return
	}
	if c.calls++; c.calls <= 2 {
		wait := &forrst.Retry{Allowed: true, Strategy: forrst.Fixed, After: &forrst.Duration{Value: 50, Unit: "millisecond"}}
		_ = forrst.WriteError(w, req.ID, wait, forrst.Error{Code: "UNAVAILABLE", Message: "busy"})
		return
	}
	done := forrst.Response{Protocol: forrst.Current, ID: &req.ID, Result: json.RawMessage(`{"charged":100}`)}
	_ = done.Write(w)
}

func main() {
	handler := &charges{}
	server := httptest.NewServer(handler)
	defer server.Close()

	// Charges honor idempotency keys, so forbear may make one for each call.
	policy := forbear.Policy{Keys: forbear.KeyGenerate}
	retryer, err := forbear.New("charges", policy, forbear.WithoutLog())
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: forrst.NewTransport(nil, retryer, forrst.Options{Phase: forrst.Phase2})}

	body, err := json.Marshal(forrst.Request{
		Protocol: forrst.Current,
		ID:       "req_1",
		Call:     forrst.Call{Function: "charges.create", Arguments: map[string]int{"amount": 100}},
	})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Post(server.URL, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	parsed, err := forrst.ParseResponse(reply)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d attempts, response to %s: %s\n", handler.calls, *parsed.ID, parsed.Result)
}
