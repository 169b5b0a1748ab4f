// Guide is the program of docs/guides/webhooks-api.md: it shows what is dead and
// sends it again.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/forbear-go/forbear/client"
)

func main() {
	if err := sendAgain(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// sendAgain lists the dead messages of a service and sends all of them again.
func sendAgain(ctx context.Context, url string) error {
	c, err := client.NewClientWithResponses(url, client.WithToken(os.Getenv("FORBEAR_API_TOKEN")), client.WithActor("ann"))
	if err != nil {
		return err
	}
	dead := []client.ListMessagesParamsState{client.ListMessagesParamsStateDead}
	for m, err := range c.Messages(ctx, client.ListMessagesParams{State: &dead}) {
		if err != nil {
			return err
		}
		fmt.Println(m.ID, m.Endpoint, m.ErrorType)
	}
	batch := client.ManyMessages{Filter: client.MessageFilter{State: []client.MessageFilterState{client.MessageFilterStateDead}}}
	for {
		r, err := c.SendMessagesAgainWithResponse(ctx, batch)
		if err == nil {
			err = client.Failed(r.HTTPResponse, r.Body)
		}
		if err != nil {
			return err
		}
		fmt.Println(r.JSON200.Done, "sent again, left:", r.JSON200.Refused)
		if batch.After = r.JSON200.Next; batch.After == "" {
			return nil
		}
	}
}
