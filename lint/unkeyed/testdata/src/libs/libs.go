// Package libs holds writes through clients that retry by themselves.
package libs

import "github.com/go-resty/resty/v2"

func pay(url string) error {
	client := resty.New().SetRetryCount(3)
	_, err := client.R().SetBody("5").Post(url) // want `FB1030: resty retries this POST without an Idempotency-Key`
	return err
}

func keyed(url, key string) error {
	client := resty.New().SetRetryCount(3)
	_, err := client.R().SetHeader("Idempotency-Key", key).SetBody("5").Post(url)
	return err
}

func reads(url string) error {
	_, err := resty.New().SetRetryCount(3).R().Get(url)
	return err
}
