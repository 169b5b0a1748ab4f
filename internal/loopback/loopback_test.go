package loopback_test

import (
	"testing"

	"github.com/forbear-go/forbear/internal/loopback"
)

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost":                 true,
		"LocalHost:8080":            true,
		"127.0.0.1":                 true,
		"127.3.2.1:80":              true,
		"::1":                       true,
		"[::1]":                     true,
		"[::1]:8080":                true,
		"::ffff:127.0.0.1":          true,
		"":                          false,
		":8080":                     false, // every interface
		"0.0.0.0:8080":              false,
		"[::]:8080":                 false,
		"[::1":                      false,
		"::1]":                      false,
		"10.0.0.1":                  false,
		"127.0.0.1.example.com":     false,
		"localhost.example.com:443": false,
		"2130706433":                false, // 127.0.0.1 to some resolvers
		"127.1":                     false, // likewise
	} {
		if got := loopback.Host(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
