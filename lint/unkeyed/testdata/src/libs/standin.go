package libs

import (
	"net/http"
	"strings"

	"github.com/hashicorp/go-retryablehttp"
)

// A client of net/http that is made of one that retries.

type log struct{ http, plain, either *http.Client }

func newLog(careful bool) *log {
	l := &log{http: retryablehttp.NewClient().StandardClient(), plain: &http.Client{}}
	l.either = retryablehttp.NewClient().StandardClient()
	if careful {
		l.either = &http.Client{}
	}
	return l
}

func (l *log) append(url string) error {
	req, err := http.NewRequest("POST", url, strings.NewReader("7"))
	if err != nil {
		return err
	}
	resp, err := l.http.Do(req) // want `FB1030: retries POST through http.Client.Do`
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (l *log) appendOnce(url string) error {
	resp, err := l.plain.Post(url, "text/plain", strings.NewReader("7"))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (l *log) appendPerhaps(url string) error {
	resp, err := l.either.Post(url, "text/plain", strings.NewReader("7"))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (l *log) appendKeyed(url, key string) error {
	req, err := http.NewRequest("POST", url, strings.NewReader("7"))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
