package libs

import (
	"errors"
	"net/http"

	"github.com/avast/retry-go/v4"
)

func get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("refused")
	}
	return nil
}

func handed(url string) error {
	return retry.Do(func() error { return get(url) }, retry.Attempts(3)) // want `FB1035: retries through retry.Do on status 400`
}

// chosen says which errors are tried again.
func chosen(url string, outage func(error) bool) error {
	return retry.Do(func() error { return get(url) }, retry.Attempts(3), retry.RetryIf(outage))
}
