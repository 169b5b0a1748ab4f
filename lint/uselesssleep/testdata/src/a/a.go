// Package a holds waits after the last attempt.
package a

import (
	"math/rand/v2"
	"net/http"
	"time"
)

func get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func late(url string) (err error) {
	for i := 0; i < 3; i++ { // want `FB1054: waits once more after the last attempt of a.get`
		if err = get(url); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func foot(url string) (err error) {
	for range 3 { // want `FB1054`
		if err = get(url); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func between(url string) (err error) {
	for i := 0; i < 3; i++ {
		if i > 0 {
			time.Sleep(rand.N(time.Second))
		}
		if err = get(url); err == nil {
			return nil
		}
	}
	return err
}

func checked(url string) (err error) {
	for i := 0; i < 3; i++ {
		if err = get(url); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(rand.N(time.Second))
		}
	}
	return err
}

// The wait is FB1001's, which is mended as a whole.
func fixed(url string) (err error) {
	for i := 0; i < 3; i++ {
		if err = get(url); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// The wait is meant to be the same every time, and the last one is useless all
// the same.
func meant(url string) (err error) {
	//forbear:ignore FB1001 the vendor asks for 1 s
	for i := 0; i < 3; i++ { // want `FB1054`
		if err = get(url); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
