// Package local holds retries of what never leaves the machine.
package local

import (
	"net/http"
	"os"
	"os/exec"
	"time"
)

// again calls what it is given; its only caller gives it a function of files.
func again(remove func(string) error, name string) (err error) {
	for range 5 {
		if err = remove(name); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func clean(name string) error { return again(os.RemoveAll, name) }

// either is given both.
func either(do func(string) error, name string) (err error) {
	for range 5 { // want `FB1001: retries do on failure and waits 10ms every time`
		if err = do(name); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func both(name string) {
	either(os.Remove, name)
	either(func(url string) error { _, err := http.Get(url); return err }, name)
}

func child(name string) (err error) {
	for range 5 {
		if err = exec.Command(name).Run(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
