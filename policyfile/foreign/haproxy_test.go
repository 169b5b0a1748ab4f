package foreign

import "testing"

// A guard of several methods side by side holds for no request, which is worth a word.
func TestHAProxyGuardOfAllAtOnce(t *testing.T) {
	const file = "defaults\n  mode http\n  timeout connect 2s\n  timeout server 5s\nbackend a\n  retry-on 503\n  server s 10.0.0.1:80\n  http-request disable-l7-retry if "
	const hint = "the one in line 8 asks for several methods at once"
	for _, tt := range []struct {
		guard     string
		want, not []string
	}{
		{"METH_POST METH_PUT", []string{hint}, nil},
		{"{ method POST } { method PATCH }", []string{hint}, nil},
		{"METH_POST || METH_PUT", []string{"repeats PATCH"}, []string{"several methods at once"}},
		{"METH_POST { path /a }", []string{"repeats POST and PATCH"}, []string{"several methods at once"}},
		{"METH_POST { req.hdr(Idempotency-Key) -m found }", []string{"repeats POST and PATCH"}, []string{"several methods at once"}},
	} {
		t.Run(tt.guard, func(t *testing.T) { holds(t, said("haproxy.cfg", file+tt.guard+"\n"), tt.want, tt.not) })
	}
}
