package watermillconsume_test

import (
	"log"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/forbear-go/forbear/brokers/watermillconsume"
	"github.com/forbear-go/forbear/consume"
)

var (
	router  *message.Router
	settled consume.Options
)

func ExampleMiddleware() {
	middleware, err := watermillconsume.Middleware(watermillconsume.Options{Options: settled})
	if err != nil {
		log.Fatal(err)
	}
	router.AddMiddleware(middleware)
}
