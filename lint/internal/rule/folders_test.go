package rule

import "testing"

func TestFolders(t *testing.T) {
	tests := []struct{ pkg, module, want string }{
		{"example.com/acme/testserver/dial", "example.com/acme/testserver", "dial"},
		{"example.com/acme/testserver", "example.com/acme/testserver", ""},
		{"example.com/acme/shop/test/load", "example.com/acme/shop", "test/load"},
		{"example.com/acme/shop/e2e/load", "example.com/acme/shop/e2e", "e2e/load"},
		{"example.com/testserver/dial", "example.com/testserver", "dial"},
		{"example.com/acme/testserver2/dial", "example.com/acme/testserver", "example.com/acme/testserver2/dial"},
		{"testkit/dial", "", "testkit/dial"}, // no module is known
	}
	for _, tt := range tests {
		if got := folders(tt.pkg, tt.module); got != tt.want {
			t.Errorf("folders(%q, %q) = %q, want %q", tt.pkg, tt.module, got, tt.want)
		}
	}
}
