// Command aws is a program of docs/guides/sdks.md: it puts a file into a
// bucket, announces it in a queue and reads the queue.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
)

// newClient returns an HTTP client for one dependency, with a budget of its own.
func newClient(dependency string, opts ...httpretry.Option) *http.Client {
	retryer := forbear.Must(forbear.New(dependency, forbear.Policy{
		Backoff: forbear.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second},
		// As few calls as these may be retried three times in 30 s. This program
		// may need more; a service with some traffic does not.
		Budget: budget.Policy{MinRetries: 6},
	}))
	return &http.Client{Transport: httpretry.NewTransport(nil, retryer, opts...)}
}

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	objects := s3.NewFromConfig(cfg, func(o *s3.Options) {
		// The SDK hides that a file can be read again, so forbear keeps what is
		// sent: up to 8 MiB for each upload. Send a longer file in parts.
		o.HTTPClient = newClient("s3", httpretry.WithBodyLimit(8<<20))
		o.Retryer = aws.NopRetryer{}
	})
	queue := sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.HTTPClient = newClient("sqs")
		o.Retryer = aws.NopRetryer{}
	})

	file, err := os.Open(os.Getenv("REPORT"))
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	_, err = objects.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String("reports"),
		Key:    aws.String("november.csv"),
		Body:   file,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored")

	// SQS speaks POST and knows no Idempotency-Key. A first-in-first-out queue
	// drops a message whose deduplication id it has seen, so sending is safe to
	// repeat. In a standard queue it is not: a repeated message is there twice.
	_, err = queue.SendMessage(forbear.Idempotent(ctx), &sqs.SendMessageInput{
		QueueUrl:               aws.String(os.Getenv("QUEUE_URL")),
		MessageBody:            aws.String("november.csv"),
		MessageGroupId:         aws.String("reports"),
		MessageDeduplicationId: aws.String("november"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("announced")

	// With an id of its own the call gets the same messages when it is repeated.
	received, err := queue.ReceiveMessage(forbear.Idempotent(ctx), &sqs.ReceiveMessageInput{
		QueueUrl:                aws.String(os.Getenv("QUEUE_URL")),
		ReceiveRequestAttemptId: aws.String(idempotency.NewKey()),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range received.Messages {
		fmt.Println("received", aws.ToString(m.Body))
	}
}
