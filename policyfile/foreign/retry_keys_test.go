package foreign

import "testing"

// What no reader reads is named with what it sets, and for what.
func TestSettingsThatAreNotRead(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		line             int
		want             string
	}{
		{"a queue of CloudFormation", "t.yaml", "Resources:\n  Q: {Type: AWS::SQS::Queue, Properties: {RedrivePolicy: {maxReceiveCount: 1000}}}\n", 2, "maxReceiveCount of AWS::SQS::Queue: how often a message is received before it is dead-lettered"},
		{"the resource after it", "t.json", `{"Resources": {"Q": {"Type": "AWS::SQS::Queue"}, "J": {"Type": "AWS::Batch::JobDefinition", "Properties": {"RetryStrategy": {"Attempts": 9}}}}}`, 1, "RetryStrategy of AWS::Batch::JobDefinition"},
		{"a task queue of Terraform", "q.tf", "# retry_config is below\nresource \"google_cloud_tasks_queue\" \"q\" {\n  retry_config {\n    max_attempts = -1\n  }\n}\n", 3, "retry_config of google_cloud_tasks_queue: how often a task is tried, by max_attempts; -1 means forever"},
		{"a queue within a line of Terraform", "q.tf", "resource \"aws_sqs_queue\" \"q\" {\n  redrive_policy = jsonencode({ deadLetterTargetArn = a, maxReceiveCount = 4 })\n}\n", 2, "maxReceiveCount of aws_sqs_queue: how often a message is received before it is dead-lettered"},
		{"a heredoc of Terraform", "q.tf", "resource \"aws_sqs_queue\" \"q\" {\n  redrive_policy = <<E\n{\"maxReceiveCount\": 4}\nE\n}\n", 3, "maxReceiveCount of aws_sqs_queue: how often a message is received before it is dead-lettered"},
		{"a key that many have", "c.yaml", "jobs: {retry_count: 3}\n", 1, "retry_count"},
		{"an exporter of OpenTelemetry", "otel.yaml", "exporters: {otlp: {retry_on_failure: {max_elapsed_time: 0}}}\n", 1, "retry_on_failure of the OpenTelemetry Collector: how an exporter retries; max_elapsed_time 0 means forever"},
		{"a producer of RocketMQ", "application.properties", "retryTimesWhenSendFailed=20\n", 1, "retryTimesWhenSendFailed of RocketMQ: how often a producer sends again"},
		{"a health check of Compose", "compose.yaml", "services: {a: {healthcheck: {test: x, interval: 1s, retries: 3}}}\n", 0, ""},
		{"a health check of ECS", "task.json", `{"containerDefinitions": [{"healthCheck": {"command": ["x"], "interval": 5, "retries": 3}}]}`, 0, ""},
		{"retries beside a health check", "compose.yaml", "services: {a: {healthcheck: {retries: 3}, client: {retries: 4}}}\n", 1, "retries"},
		{"a client that is no health check", "a.yaml", "workers: {interval: 5s, command: sync, retries: 50}\n", 1, "retries"},
		{"what stands below a health check", "compose.yaml", "a: {healthcheck: {test: [x], interval: 1s, retries: 3, upstream: {max_retries: 50}}}\n", 1, "max_retries"},
		{"properties with a type of their own", "a.yaml", "properties: {client: {type: http, max_retries: 50}}\n", 1, "max_retries"},
		{"a text of JSON in Terraform", "q.tf", "resource \"aws_sqs_queue\" \"q\" {\n  redrive_policy = \"{\\\"deadLetterTargetArn\\\":\\\"a\\\",\\\"maxReceiveCount\\\":400}\"\n}\n", 2, "maxReceiveCount of aws_sqs_queue: how often a message is received before it is dead-lettered"},
		{"a variable of Terraform", "v.tf", "variable \"max_retries\" {\n  type = number\n  default = 50\n}\n", 3, "max_retries"},
		{"a variable without a value", "v.tf", "variable \"max_retries\" {\n  type = number\n  default = null\n}\n", 0, ""},
		{"a module behind a resource", "m.tf", "resource \"google_cloud_scheduler_job\" \"j\" {\n}\nmodule \"client\" {\n  retry_count = 9\n}\n", 4, "retry_count"},
		{"comments of Terraform", "c.tf", "/*\nmax_retries = 5\n*/\na = 1 # maxReceiveCount = 4\n", 0, ""},
		{"Terraform in JSON", "q.tf.json", `{"resource": {"google_cloud_tasks_queue": {"q": {"retry_config": {"max_attempts": -1}}}}}`, 1, "retry_config of google_cloud_tasks_queue: how often a task is tried, by max_attempts; -1 means forever"},
		{"a schema", "values.schema.json", `{"properties": {"retry": {"type": "object", "properties": {"max_attempts": {"type": "integer"}}}}}`, 0, ""},
		{"properties that are none", "a.yaml", "properties: {retries: 3, name: {type: a}}\n", 1, "retries"},
		{"a type of Terraform", "v.tf", "variable \"a\" {\n  type = object({\n    retry_config = optional(object({\n      max_retries = optional(number, 3)\n    }))\n  })\n}\n", 0, ""},
		{"a comparison of Terraform", "v.tf", "a = [\n  each.value.retry_policy == null\n]\n", 0, ""},
		{"prose", "docs.json", `{"MaximumRetryAttempts": "The most often that a function is tried again, by default, when it has returned an error."}`, 0, ""},
		{"what is off", "report.json", `{"Retry": false}`, 0, ""},
		{"a comment of Terraform", "q.tf", "// maxReceiveCount = 3\n", 0, ""},
	} {
		got := OpenMet(tt.file, []byte(tt.text), "")
		if got.Retry.Line != tt.line || got.Setting != tt.want || len(got.Parts)+len(got.Faults)+len(got.Policies) > 0 {
			t.Errorf("%s: line %d, %q, want line %d, %q", tt.name, got.Retry.Line, got.Setting, tt.line, tt.want)
		}
	}
}
