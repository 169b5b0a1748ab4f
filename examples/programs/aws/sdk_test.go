package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/examples/programs/internal/flaky"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// settings are those of a client of the server.
func settings(server *flaky.Server, opts ...httpretry.Option) aws.Config {
	retryer := forbear.Must(forbear.New("aws", forbear.Policy{
		Backoff: forbear.Backoff{Base: 10 * time.Millisecond},
	}, forbear.WithoutLog()))
	return aws.Config{
		Region:       "eu-central-1",
		BaseEndpoint: &server.URL,
		// As LoadDefaultConfig has it.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		HTTPClient:                 &http.Client{Transport: httpretry.NewTransport(server.Client().Transport, retryer, opts...)},
		Retryer:                    func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	}
}

// reasonOf is why forbear ended a call: the SDK's error holds the response.
func reasonOf(err error) forbear.Reason {
	failed, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok {
		return reason.None
	}
	why, ok := httpretry.Outcome(failed.Response.Response)
	if !ok {
		return reason.None
	}
	return why.Reason
}

// TestUploadOverTLS: over TLS the SDK sends the file in chunks with a checksum
// behind them, and hands the transport no way to rewind it. What fits into the body
// limit is sent again all the same; what does not is sent once.
func TestUploadOverTLS(t *testing.T) {
	report := bytes.Repeat([]byte("november;"), 1<<17) // a little more than 1 MB
	for _, tt := range []struct {
		name string
		opts []httpretry.Option
		ok   bool
	}{
		{"within the limit", []httpretry.Option{httpretry.WithBodyLimit(8 << 20)}, true},
		{"beyond the default", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := flaky.New(t, httptest.NewTLSServer, operation, respond)
			bucket := s3.NewFromConfig(settings(server, tt.opts...))
			_, err := bucket.PutObject(t.Context(), &s3.PutObjectInput{
				Bucket: aws.String("reports"), Key: aws.String("november.csv"), Body: bytes.NewReader(report),
			})
			const put = "PUT /reports/november.csv"
			if !tt.ok {
				if n, why := len(server.Received(put)), reasonOf(err); n != 1 || why != reason.NotReplayable {
					t.Errorf("%v (%v) after %d attempts, want a failure after one", err, why, n)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sent := server.Attempts(t, put)
			if sent.Header.Get("Content-Encoding") != "aws-chunked" || !bytes.Contains(sent.Body, report) {
				t.Errorf("the bucket received %d bytes, %q", len(sent.Body), sent.Header.Get("Content-Encoding"))
			}
		})
	}
}

// TestSendMessageNeedsTheWord: a POST without a key is sent once, unless the
// caller says that it is safe to repeat.
func TestSendMessageNeedsTheWord(t *testing.T) {
	server := flaky.New(t, httptest.NewServer, operation, respond)
	queue := sqs.NewFromConfig(settings(server))
	message := &sqs.SendMessageInput{QueueUrl: aws.String(server.URL + "/1/reports"), MessageBody: aws.String(message)}
	_, err := queue.SendMessage(t.Context(), message)
	if n, why := len(server.Received("AmazonSQS.SendMessage")), reasonOf(err); n != 1 || why != reason.NoKey {
		t.Errorf("%v (%v) after %d attempts, want a failure after one", err, why, n)
	}
	_, err = queue.SendMessage(forbear.Idempotent(t.Context()), message)
	if n := len(server.Received("AmazonSQS.SendMessage")); err != nil || n != 3 {
		t.Errorf("%v after %d attempts, want a success after two more", err, n)
	}
}
