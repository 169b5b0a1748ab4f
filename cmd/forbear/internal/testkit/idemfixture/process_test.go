package idemfixture

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProcesses kills and freezes the processes that run a request, for real.
func TestProcesses(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres", "redis"} {
		t.Run(store, func(t *testing.T) {
			for _, c := range []struct {
				name  string
				rerun bool
				test  func(*testing.T, *runner)
			}{
				{"KilledIsHeld", false, killedIsHeld},
				{"KilledIsTakenOver", true, killedIsTakenOver},
				{"FrozenOwnerIsFenced", true, frozenIsFenced},
				{"FrozenOwnerEndsWhatIsHeld", false, frozenEndsHeld},
				{"KilledTransactionIsExact", false, killedTransaction},
				{"FrozenTransactionFreesItsKey", false, frozenTransaction},
			} {
				if store == "redis" && c.name == "KilledTransactionIsExact" || store != "postgres" && c.name == "FrozenTransactionFreesItsKey" {
					continue // it has no transactions to share, or no server that ends them
				}
				t.Run(c.name, func(t *testing.T) {
					w := newWorld(t, store, servers{}, func(f *Config) {
						f.Rerun, f.Wait = c.rerun, 200*time.Millisecond
						if c.name == "FrozenTransactionFreesItsKey" {
							f.Lease = time.Second
						}
					})
					c.test(t, &runner{world: w, results: map[string][]*result{}})
				})
			}
		})
	}
}

// post is a request to an instance under the one key of these tests.
func post(id, instance, path, stop string) request {
	principal, body := "t1", `{"amount":100}`
	q := request{ID: id, Method: "POST", Path: path, Instance: instance, Principal: &principal, Body: &body, Headers: map[string]string{"Idempotency-Key": "7c4a8d0a-1c2d-4e3f-8a4b-0000000000aa"}}
	if stop != "" {
		q.Headers["X-Test-Stop-At"] = stop
	}
	return q
}

// stopped starts a request on A that stops at a place.
func (r *runner) stopped(path, at string) {
	r.t.Helper()
	r.at("A")
	r.async.Go(func() { r.send(post("r1", "A", path, at)) })
	r.ledger.await(r.t, "stopped:r1")
}

// want sends a request to B and compares.
func (r *runner) want(id, path string, status int, problem string, replayed bool) *result {
	r.t.Helper()
	r.send(post(id, "B", path, ""))
	res := r.results[id][0]
	if res.status != status || res.replayed() != replayed || problem != "" && !strings.Contains(string(res.body), problem) {
		r.t.Fatalf("%s: %v, replayed %v, %s; want %d, %v, %s", id, res.status, res.replayed(), res.body, status, replayed, problem)
	}
	return res
}

func (r *runner) wantEffects(n int) {
	r.t.Helper()
	if got := r.effects()["t1"]; got != n {
		r.t.Errorf("%d effects, want %d", got, n)
	}
}

func killedIsHeld(_ *testing.T, r *runner) {
	r.stopped("/pay", "after_effect")
	r.signal("A", syscall.SIGKILL)
	r.want("r2", "/pay", 409, "/in-progress", false)
	r.advance(time.Minute)
	r.want("r3", "/pay", 409, "/outcome-unknown", false)
	r.want("r4", "/pay", 409, "/outcome-unknown", false)
	r.async.Wait()
	r.wantEffects(1)
}

func killedIsTakenOver(_ *testing.T, r *runner) {
	r.stopped("/pay", "before_effect")
	r.signal("A", syscall.SIGKILL)
	r.want("r2", "/pay", 409, "/in-progress", false)
	r.advance(time.Minute)
	r.want("r3", "/pay", 201, "", false)
	r.want("r4", "/pay", 201, "", true)
	r.async.Wait()
	r.wantEffects(1)
}

func frozenIsFenced(t *testing.T, r *runner) {
	r.stopped("/pay", "after_effect")
	r.signal("A", syscall.SIGSTOP)
	r.advance(time.Minute)
	second := r.want("r2", "/pay", 201, "", false)
	r.signal("A", syscall.SIGCONT)
	r.ledger.raise(r.ledger.resumes, "r1")
	r.async.Wait()
	if first := r.results["r1"][0]; first.status != 201 || !first.replayed() || !bytes.Equal(first.body, second.body) {
		t.Errorf("the frozen owner answered %v %s, want the stored %s", first.status, first.body, second.body)
	}
	r.wantEffects(2) // what Rerun allows
}

func frozenEndsHeld(t *testing.T, r *runner) {
	r.stopped("/pay", "after_effect")
	r.signal("A", syscall.SIGSTOP)
	r.advance(time.Minute)
	r.want("r2", "/pay", 409, "/outcome-unknown", false)
	r.signal("A", syscall.SIGCONT)
	r.ledger.raise(r.ledger.resumes, "r1")
	r.async.Wait()
	third := r.want("r3", "/pay", 201, "", true)
	if first := r.results["r1"][0]; first.status != 201 || !bytes.Equal(first.body, third.body) {
		t.Errorf("the frozen owner answered %v %s", first.status, first.body)
	}
	r.wantEffects(1)
}

// killedTransaction: the effect is written and not committed, and then done
// once, without a lease to wait for.
func killedTransaction(_ *testing.T, r *runner) {
	r.stopped("/pay-tx", "after_effect")
	r.signal("A", syscall.SIGKILL)
	r.async.Wait()
	r.want("r2", "/pay-tx", 201, "", false)
	r.want("r3", "/pay-tx", 201, "", true)
	r.wantEffects(1)
}

// frozenTransaction: the server ends the transaction of a process that is frozen
// in the middle of it when its lease is over. Another does the work, and the
// frozen one responds with what that has stored.
func frozenTransaction(t *testing.T, r *runner) {
	r.stopped("/pay-tx", "after_effect")
	r.signal("A", syscall.SIGSTOP)
	var second *result
	for end, n := time.Now().Add(time.Minute), 0; second == nil; n++ {
		id := fmt.Sprint("again-", n)
		r.send(post(id, "B", "/pay-tx", ""))
		switch res := r.results[id][0]; {
		case res.status == 201 && !res.replayed():
			second = res
		case res.status != 409:
			t.Fatalf("%s: %d %s", id, res.status, res.body)
		case time.Now().After(end):
			t.Fatal("the key is still held by a process that does nothing")
		}
	}
	r.signal("A", syscall.SIGCONT)
	r.ledger.raise(r.ledger.resumes, "r1")
	r.async.Wait()
	if first := r.results["r1"][0]; first.status != 201 || !first.replayed() || !bytes.Equal(first.body, second.body) {
		t.Errorf("the frozen owner responded %v %s, want the stored %s", first.status, first.body, second.body)
	}
	r.wantEffects(1)
}
