package policyfile

import (
	"slices"
	"strings"
	"testing"
)

func TestListenAddresses(t *testing.T) {
	long := "unix:/" + strings.Repeat("a", maxSocketPath)
	for _, tt := range []struct {
		name, listen string
		want         Addresses
		fault        string // after the file's name
	}{
		{"one", "127.0.0.1:8080", Addresses{"127.0.0.1:8080"}, ""},
		{"all interfaces", "':8080'", Addresses{":8080"}, ""},
		{"IPv6", "'[::1]:8080'", Addresses{"[::1]:8080"}, ""},
		{"unix", "unix:/run/forbear/gateway.sock", Addresses{"unix:/run/forbear/gateway.sock"}, ""},
		{"abstract", "unix:@forbear", Addresses{"unix:@forbear"}, ""},
		{"systemd", "'systemd:'", Addresses{"systemd:"}, ""},
		{"systemd by name", "systemd:web", Addresses{"systemd:web"}, ""},
		{"list", "[127.0.0.1:8080, unix:/run/g.sock]", Addresses{"127.0.0.1:8080", "unix:/run/g.sock"}, ""},
		{"list of one", "['127.0.0.1:8080']", Addresses{"127.0.0.1:8080"}, ""},
		{"no port", "localhost", nil, "2:11: gateway.listen is \"localhost\": want an address"},
		{"no path", "'unix:'", nil, "2:11: gateway.listen is \"unix:\": want a path"},
		{"long path", long, nil, "2:11: gateway.listen is "},
		{"two names", "systemd:a:b", nil, "2:11: gateway.listen is "},
		{"mapping", "{tcp: 1}", nil, "2:11: gateway.listen is a mapping: want an address"},
		{"empty list", "[]", nil, "2:11: gateway.listen is an empty list: want an address such as 127.0.0.1:8080"},
		{"list in a list", "['127.0.0.1:1', ['127.0.0.1:2']]", nil, "2:27: gateway.listen is a list: want an address"},
		{"bad in a list", "['127.0.0.1:1', nowhere]", nil, "2:27: gateway.listen is \"nowhere\": want an address"},
		{"twice", "['127.0.0.1:1', '127.0.0.1:1']", nil, "2:27: gateway.listen has "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse("f", []byte("gateway:\n  listen: "+tt.listen+"\n"))
			if tt.fault != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "f:"+tt.fault) {
					t.Errorf("got %v, want %s", err, tt.fault)
				}
				return
			}
			if err != nil || !slices.Equal(f.Gateway.Listen, tt.want) {
				t.Fatalf("got %v, %v, want %v", f, err, tt.want)
			}
			text, err := Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse("again", text)
			if err != nil || !slices.Equal(again.Gateway.Listen, tt.want) {
				t.Errorf("written and read: %v, %v, want %v, by way of:\n%s", again, err, tt.want, text)
			}
			if len(tt.want) == 1 && strings.Contains(string(text), "[") != strings.Contains(tt.want[0], "[") {
				t.Errorf("a single address is a list:\n%s", text)
			}
			other, _ := Parse("other", []byte("gateway:\n  listen: 127.0.0.1:9\n"))
			if len(Diff(f, other)) != 1 || len(Diff(f, again)) != 0 {
				t.Errorf("changes: %v, and of the same: %v", Diff(f, other), Diff(f, again))
			}
		})
	}
}
