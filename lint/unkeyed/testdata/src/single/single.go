// Package single has a client that is not told to retry.
package single

import "github.com/go-resty/resty/v2"

func once(url string) error {
	_, err := resty.New().R().SetBody("5").Post(url)
	return err
}
