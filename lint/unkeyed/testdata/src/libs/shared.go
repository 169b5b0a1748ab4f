package libs

import "github.com/go-resty/resty/v2"

type api struct{ client *resty.Client }

func newAPI(times int) *api { return &api{resty.New().SetRetryCount(times)} }

func (a *api) order(url string) error {
	_, err := a.client.R().SetBody("6").Post(url) // want `FB1030: retries POST through resty.Request.Post`
	return err
}

func (a *api) run(method, url string) error {
	_, err := a.client.R().Execute(method, url) // want `FB1030: retries whatever method it is given, PATCH by amend too`
	return err
}

func amend(a *api) error { return a.run("PATCH", "http://example.com/1") }
