package serve

import (
	"flag"
	"fmt"

	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// registerRetention registers how long what is over is kept.
func registerRetention(f *flag.FlagSet, o *durable.Options) {
	f.DurationVar(&o.Retention, "dlq-retention", deadletter.DefaultRetention, "how long dead letters are kept")
	f.DurationVar(&o.History, "history-retention", dispatch.MinRetention, "how long finished deliveries are kept, with their attempts; an id stands for its message as long, so at least 168h")
	f.DurationVar(&o.Bodies, "body-retention", 0, "how long the payloads of delivered messages are kept, at least 1h; 0: as long as the history")
}

// checkRetention refuses what the dispatcher would, by the names of the flags and
// before the database is opened.
func checkRetention(o *durable.Options) error {
	switch {
	case o.History < dispatch.MinRetention:
		return fmt.Errorf("--history-retention %v is below %v, for which an id stands for its message (R-6); --body-retention may be less", o.History, dispatch.MinRetention)
	case o.Bodies == 0:
		return nil
	case o.Bodies < dispatch.MinBodyRetention:
		return fmt.Errorf("--body-retention %v is below %v", o.Bodies, dispatch.MinBodyRetention)
	case o.Bodies > o.History:
		return fmt.Errorf("--body-retention %v is longer than --history-retention %v, with which payloads go at the latest", o.Bodies, o.History)
	}
	return nil
}
