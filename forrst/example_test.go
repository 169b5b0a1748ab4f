package forrst_test

import (
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/forbear-go/forbear/forrst"
)

// What a client makes of an answer.
func ExamplePhase_Advise() {
	answer := `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"req_1","result":null,
		"errors":[{"code":"RATE_LIMITED","message":"Too many requests"}],
		"extensions":[{"urn":"urn:forrst:ext:retry","data":{"allowed":true,"strategy":"fixed","after":{"value":5,"unit":"second"},"max_attempts":3}}]}`
	a := forrst.Phase3.Advise(forrst.Message{RequestID: "req_1", Status: 429, Body: []byte(answer), Now: time.Now()})
	fmt.Println(a.Failure.Type, a.Strategy, a.Failure.Hint.Floor, a.Failure.Hint.MaxRetries, a.Source)
	// Output: forrst_RATE_LIMITED fixed 5s 3 extension
}

// A server refuses a call and says when to come back.
func ExampleWriteError() {
	w := httptest.NewRecorder()
	later := &forrst.Retry{Allowed: true, Strategy: forrst.Fixed, After: &forrst.Duration{Value: 30, Unit: "second"}}
	_ = forrst.WriteError(w, "req_1", later, forrst.Error{Code: "UNAVAILABLE", Message: "Restarting"})
	fmt.Println(w.Code, w.Header().Get("Retry-After"))
	fmt.Println(w.Body)
	// Output:
	// 503 30
	// {"protocol":{"name":"forrst","version":"0.1.0"},"id":"req_1","result":null,"errors":[{"code":"UNAVAILABLE","message":"Restarting"}],"extensions":[{"urn":"urn:forrst:ext:retry","data":{"allowed":true,"strategy":"fixed","after":{"value":30,"unit":"second"}}}]}
}
