package lattice

import (
	"time"

	"github.com/forbear-go/forbear/credential/oauth"
)

// ClientCredentials returns a source of tokens that asks the endpoint as the
// SDKs do: with id and secret in the form, five minutes before the end of the
// last token, and for an hour where the response names no end. url is "https://" +
// endpoint + [TokenPath]. credential.New turns it into what [Options] and the
// module grpcretry take.
func ClientCredentials(url, id, secret string) *oauth.ClientCredentials {
	return &oauth.ClientCredentials{
		URL: url, ID: id, Secret: oauth.Value(secret),
		Form: true, Early: 5 * time.Minute, Life: time.Hour,
	}
}
