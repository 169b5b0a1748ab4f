package batch_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/batch"
)

const (
	killItems       = 2000
	killAfter       = 300 // effects, at which a run that is to be killed waits for that
	killConcurrency = 4
)

// TestMain is the program that TestKilledRunGoesOn kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FORBEAR_BATCH_DIR"); dir != "" {
		if err := killable(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killable runs a batch whose effect is a line in a file.
func killable(dir string) error {
	effects, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	j, err := batch.OpenFile(filepath.Join(dir, "journal"), "kill")
	if err != nil {
		return err
	}
	var n atomic.Int64
	_, err = batch.Run(context.Background(), retryer(&testing.T{}, calm()), numbers(killItems), func(_ context.Context, i int) error {
		time.Sleep(2 * time.Millisecond)
		if os.Getenv("FORBEAR_BATCH_WAITS") != "" && n.Add(1) > killAfter {
			time.Sleep(time.Hour)
		}
		_, err := fmt.Fprintf(effects, "%d\n", i)
		return err
	}, batch.Options[int]{Concurrency: killConcurrency, ID: name, Journal: j})
	if err != nil {
		return err
	}
	return j.Close()
}

// A run that is killed, again and again, goes on where it was: nothing is lost,
// and twice is done at most what was under way.
func TestKilledRunGoesOn(t *testing.T) {
	dir := t.TempDir()
	lines := func() []string {
		text, _ := os.ReadFile(filepath.Join(dir, "effects"))
		return strings.Fields(string(text))
	}
	kills := 0
	for {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FORBEAR_BATCH_DIR="+dir)
		if kills < 5 {
			cmd.Env = append(cmd.Env, "FORBEAR_BATCH_WAITS=yes")
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		before := len(lines())
		for kills < 5 && len(lines()) < before+40 {
			time.Sleep(time.Millisecond)
		}
		if kills == 5 {
			if err := <-ended; err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			break
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Fatal("it had ended by itself")
		}
		kills++
	}
	done := map[string]int{}
	for _, id := range lines() {
		done[id]++
	}
	if len(done) != killItems {
		t.Errorf("%d items are done, want %d", len(done), killItems)
	}
	if twice := len(lines()) - killItems; twice > kills*killConcurrency {
		t.Errorf("%d items ran twice after %d kills of %d workers", twice, kills, killConcurrency)
	}
}
