package serve

import (
	"fmt"
	"reflect"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/policyfile"
)

// credentials returns what the policy file names for a dependency, or nil. Those
// that there are stay across reloads, with their token, while the file says the
// same of them.
func (s *server) credentials(dep policyfile.Dependency) (*forbear.Credentials, error) {
	c := dep.Credentials
	if reflect.ValueOf(c).IsZero() {
		return nil, nil
	}
	if k := s.kept[dep.Name]; k.credentials != nil && reflect.DeepEqual(k.source, c) {
		return k.credentials, nil
	}
	made, err := gateway.CredentialSource{
		Secret:       gateway.Reference(c.Secret),
		TokenURL:     c.TokenURL,
		ClientID:     c.ClientID,
		ClientSecret: gateway.Reference(c.ClientSecret),
		Scopes:       c.Scopes,
		Connect:      dep.Policy.Connect,
	}.Credentials()
	if err != nil {
		return nil, fmt.Errorf("dependency %s: %w", dep.Name, err)
	}
	return made, nil
}
