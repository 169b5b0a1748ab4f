package foreign

import "testing"

// A guard that asks for several methods at once holds for no request.
func TestHAProxyGuards(t *testing.T) {
	const file = "defaults\n  mode http\n  timeout connect 2s\n  timeout server 5s\nbackend a\n  retry-on 503\n  server s 10.0.0.1:80\n  http-request disable-l7-retry if "
	for guard, want := range map[string]string{
		"METH_POST METH_PUT":                              "repeats POST and PATCH",
		"{ method POST } { method PATCH }":                "repeats POST and PATCH",
		"METH_POST || METH_PUT":                           "repeats PATCH",
		"METH_POST { path /a }":                           "repeats POST and PATCH",
		"METH_POST { req.hdr(Idempotency-Key) -m found }": "repeats POST and PATCH",
	} {
		t.Run(guard, func(t *testing.T) { holds(t, said("haproxy.cfg", file+guard+"\n"), []string{want}, nil) })
	}
}
