package main

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// azureCall has the pipeline that the clients of Azure share, with its defaults.
func azureCall(url, method, body string) (int, error) {
	req, err := runtime.NewRequest(context.Background(), method, url)
	if err != nil {
		return 0, err
	}
	if body != "" {
		if err := req.SetBody(streaming.NopCloser(strings.NewReader(body)), "application/json"); err != nil {
			return 0, err
		}
	}
	pipeline := runtime.NewPipeline("zoo", "v1", runtime.PipelineOptions{}, &policy.ClientOptions{})
	return read(pipeline.Do(req))
}

// s3Call gets an object: the other calls want a document in the response.
func s3Call(url, _, _ string) (int, error) {
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(url), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("zoo", "zoo", ""),
	})
	object, err := client.GetObject(context.Background(), &s3.GetObjectInput{Bucket: aws.String("bucket"), Key: aws.String("key")})
	if err != nil {
		return 0, err
	}
	defer func() { _ = object.Body.Close() }()
	_, err = io.Copy(io.Discard, object.Body)
	return http.StatusOK, err
}
