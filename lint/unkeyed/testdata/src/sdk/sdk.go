// Package sdk is given a client.
package sdk

import "net/http"

type API struct{ hc *http.Client }

func New(hc *http.Client) *API { return &API{hc} }
