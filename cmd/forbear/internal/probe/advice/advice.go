// Package advice knows what to write in the words of common clients so that they retry as
// the standard asks: which option, and which value.
package advice

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
)

// Client is a client, or a family of clients that cannot be told apart by their User-Agent.
type Client struct {
	// Name is that of its page below docs/clients, too.
	Name string `json:"name"`
	// Agent is a regular expression for its User-Agent; "" when it has none of its own.
	Agent string `json:"agent,omitempty"`
	// Version is the one whose source or documentation was read.
	Version string `json:"version"`
	// Zoo are the names of its set-ups in probe/zoo/zoo.tsv.
	Zoo []string `json:"zoo"`
	// Sources are the addresses of what was read.
	Sources []string `json:"sources"`
	// Rules has a sentence or two for each rule, under its name.
	Rules map[string]string `json:"advice"`
}

//go:embed clients.json
var text []byte

// Clients returns all clients that there is advice for.
func Clients() (list []Client, err error) {
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("clients.json: %w", err)
	}
	return list, nil
}

// For returns the client that has a User-Agent; ok is false when no client is known by it.
func For(agent string) (c Client, ok bool, err error) {
	list, err := Clients()
	for i := range list {
		if list[i].Agent == "" {
			continue
		}
		is, err := regexp.MatchString(list[i].Agent, agent)
		if err != nil {
			return Client{}, false, fmt.Errorf("clients.json: %s: %w", list[i].Name, err)
		}
		if is {
			return list[i], true, nil
		}
	}
	return Client{}, false, err
}
