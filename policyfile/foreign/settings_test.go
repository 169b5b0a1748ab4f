package foreign

import (
	"strings"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		read func(string) (time.Duration, bool)
		text string
		want time.Duration
		ok   bool
	}{
		{javaTime, "500", 500 * time.Millisecond, true},
		{javaTime, "2s", 2 * time.Second, true},
		{javaTime, "10 ms", 10 * time.Millisecond, true},
		{javaTime, "PT1M0.5S", time.Minute + 500*time.Millisecond, true},
		{javaTime, "PT", 0, false},
		{javaTime, "1w", 0, false},
		{javaTime, "-1s", 0, false},
		{javaTime, "99999999999999999d", 1<<62 - 1, true},
	} {
		got, ok := tt.read(tt.text)
		if ok != tt.ok || (got-tt.want).Abs() > time.Duration(float64(tt.want)/1e9) {
			t.Errorf("%q: got %v, %v, want %v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestResilience4j(t *testing.T) {
	const fine = "retryExceptions: [java.io.IOException], ignoreExceptions: [javax.net.ssl.SSLException]"
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{"the defaults", "a.yml", "resilience4j: {retry: {instances: {a: {" + fine + "}}}}", []string{"a [] x3, waits up to 500ms, attempt 0s", "R-1 backoff.jitter: waits 500ms", "cannot R-3 total.missing", "cannot R-7 budget"}, []string{"note"}},
		{"no list", "a.yml", "resilience4j.retry.instances.a.maxAttempts: 2", []string{"a [] x2", "every "}, nil},
		{"a list that excludes nothing", "a.yml", "resilience4j.retry.instances.a.retry-exceptions: [java.lang.Exception]", []string{"every "}, nil},
		{"one attempt", "a.yml", "resilience4j.retry.instances.a.max-attempts: 1", []string{"quiet 1\n"}, []string{"x", "cannot"}},
		{
			"inherited", "a.properties", "resilience4j.retry.configs.default.max-attempts=9\nresilience4j.retry.configs.b.wait-duration=2s\nresilience4j.retry.instances.a.base-config=b\nresilience4j.retry.instances.c.wait-duration=1\n",
			[]string{"a [] x3, waits up to 2s", "c [] x9, waits up to 1ms"},
			nil,
		},
		{
			"of another profile", "a.yml", "resilience4j.retry.instances.a.max-attempts: 2\n---\nspring.config.activate.on-profile: p\nresilience4j.retry.instances.a.wait-duration: 3s\n",
			[]string{"a [] x2, waits up to 500ms", "a [p] x2, waits up to 3s"},
			nil,
		},
		{"configs alone", "a.yml", "resilience4j.retry.configs.default.max-attempts: 8", []string{"config default [] x8"}, nil},
		{"grows without a bound", "a.yml", "resilience4j.retry.instances.a: {maxAttempts: 5, waitDuration: 1s, enableExponentialBackoff: true, exponentialBackoffMultiplier: 10}", []string{"waits up to 16m40s", "R-1 backoff.cap"}, nil},
		{"random", "a.yml", "resilience4j.retry.instances.a: {enableExponentialBackoff: true, enableRandomizedWait: true}", []string{"cannot R-1"}, []string{"R-1 backoff"}},
		{"from the environment", "a.yml", "resilience4j.retry.instances.a.maxAttempts: ${A:${B:4}}", []string{"x4 at least", "the environment decides how often it retries; 4 attempts"}, nil},
		{"one attempt, or what the environment says", "a.yml", "resilience4j.retry.instances.a.maxAttempts: ${A:1}", []string{"a [] x1 at least"}, nil},
		{"certificate errors among others", "a.yml", "resilience4j: {retry: {configs: {c: {retryExceptions: [java.io.IOException]}}, instances: {a: {baseConfig: c}, b: {baseConfig: c}}}}", []string{"note 1: IOException is retried, which includes certificate errors"}, nil},
		{"settings that it does not have", "a.yml", "resilience4j.retry: {configs: {c: {max-wait-duration: 2s, wait-duration: 1s, register-health-indicator: true}}, instances: {a: {base-config: c, exponentialMaxWaitDuration: 9s}, b: {base-config: c}}}", []string{"note 1: max-wait-duration is not a setting of resilience4j's Retry, and has no effect"}, []string{"register", "exponentialMax", "b: max-wait"}},
		{"a limit of time", "a.yml", "resilience4j: {retry: {instances: {a: {" + fine + "}}}, timelimiter: {instances: {a: {}}}}", []string{"attempt 1s"}, nil},
		{"ignored", "a.yml", "resilience4j.retry.instances.a: {retryExceptions: ['c.HttpClientErrorException$NotFound'], ignoreExceptions: [c.HttpClientErrorException]}", []string{"x3"}, []string{"R-4"}},
		{"4xx and certificates", "a.yml", "resilience4j.retry.instances.a.retryExceptions: c.HttpClientErrorException, javax.net.ssl.SSLException, c.HttpClientErrorException.TooManyRequests", []string{"R-4 classify.HttpClientErrorException", "R-9 classify.SSLException"}, []string{"TooMany"}},
		{
			"two services in a file", "c.yaml", "kind: ConfigMap\ndata:\n  application.yml: |\n    resilience4j.retry.configs.default.max-attempts: 9\n---\nkind: ConfigMap\ndata:\n  application.yml: |\n    resilience4j.retry.instances.b.wait-duration: 1s\n",
			[]string{"config default [] x9", "b [] x3"},
			nil,
		},
		{
			"two services in a chart", "values.yaml", "a: {env: {resilience4j.retry.configs.default.max-attempts: 9}}\nb: {env: {resilience4j.retry.instances.b.wait-duration: 1s}}\n",
			[]string{"config default [] x9", "b [] x3"},
			nil,
		},
		{"in a map of Kubernetes", "c.yaml", "kind: ConfigMap\ndata:\n  application.properties: |\n    # retries\n    resilience4j.retry.instances.a.max-attempts=9\n", []string{"a [] x9", "5 R-2 max_retries"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}

func TestSpring(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"no retries", "spring: {application: {name: a}}", nil, []string{"fault", "x"}},
		{
			"a route", "spring.cloud.gateway.routes: [{id: a, uri: 'lb://b', filters: [{name: Retry}]}, {id: c, uri: 'http://d', filters: [AddX=1]}]",
			[]string{"b [a] x4", "R-1 backoff.jitter: retries at once", "R-3 total.missing", "cannot R-7 budget", "quiet 1\n"},
			[]string{"R-6", "R-4 classify", "d ["},
		},
		{
			"as good as it can be", "spring.cloud.gateway.server.webflux.routes: [{id: a, uri: 'lb://b', metadata: {response-timeout: 1000}, filters: [{name: Retry, args: {retries: 2, methods: [GET, PUT], timeout: 10s, jitter: {randomFactor: 1}, backoff: {firstBackoff: 1s, maxBackoff: 5s}}}]}]",
			[]string{"b [a] x3, waits up to 5s, attempt 1s, total 10s", "cannot R-5"},
			[]string{"R-1", "R-3", "R-6", "note"},
		},
		{"filters around each other", "spring.cloud.gateway: {default-filters: [Retry=2], routes: [{id: a, uri: 'lb://b', filters: ['Retry=3,NOT_FOUND,POST,1s,5s,2,true']}]}", []string{"b [a] x4, waits up to 5s", "R-4 classify.http_404", "R-6 methods: POST", "2 nested Retry filters, which share one count: the larger one applies"}, nil},
		{"filters around each other on the servlet stack", "spring.cloud.gateway.mvc.routes: [{id: a, uri: 'http://b', filters: ['Retry=2', 'Retry=3']}]", []string{"b [a] x12", "2 nested Retry filters: their attempts multiply"}, nil},
		{"a circuit breaker around it", "spring.cloud.gateway.routes: [{id: a, uri: 'lb://b', filters: ['CircuitBreaker=b', 'Retry=2']}]", []string{"b [a] x3", "time limiter of the CircuitBreaker"}, []string{"R-3 total"}},
		{"a circuit breaker inside of it", "spring.cloud.gateway.routes: [{id: a, uri: 'lb://b', filters: ['Retry=2', {name: CircuitBreaker}]}]", []string{"b [a] x3", "R-3 total.missing"}, []string{"time limiter"}},
		{"routes from elsewhere", "spring.cloud.gateway.default-filters: [Retry=2]", []string{"all routes [all routes] x3"}, nil},
		{"the servlet stack", "spring.cloud.gateway.mvc.routes: [{id: a, uri: 'http://b', filters: [{name: Retry, args: {series: CLIENT_ERROR}}]}]", []string{"b [a] x4", "cannot R-1", "cannot R-3 total.missing", "classify.http_4xx"}, []string{"4 R-3 total", "1 R-3 total"}},
		{"a client of Feign", "spring.cloud.openfeign.client.config: {default: {retryer: feign.Retryer.Default}, b: {readTimeout: 1000}}", []string{"feign clients [] x5, waits up to 1s, attempt 1m0s", "R-6", "quiet 1\n"}, []string{"b ["}},
		{"a class of its own", "feign.client.config.b: {retryer: com.example.Own}", []string{"b [] x2 at least"}, nil},
		{"parts that are not read", "spring: {ai: {retry: {max-attempts: 50}}, cloud: {loadbalancer: {retry: {enabled: true}}, config: {retry: {max-attempts: 50}}}}", []string{"spring.ai.retry.max-attempts has retry settings, and is not judged", "spring.cloud.loadbalancer.retry.enabled has retry settings", "spring.cloud.config.retry.max-attempts has retry settings"}, []string{"[]"}},
		{"a listener", "spring.rabbitmq.listener.simple: {retry: {enabled: true, multiplier: 2}}", []string{"rabbitmq simple listener [] x3, waits up to 10s", "(R-8)", "cannot R-1", "cannot R-6"}, []string{"R-1 backoff"}},
		{"a listener of Spring Boot 4", "spring.rabbitmq.listener.simple.retry: {enabled: true, max-retries: 4}", []string{"rabbitmq simple listener [] x5"}, nil},
		{"a message without an end", "spring.rabbitmq.listener.direct.default-requeue-rejected: true", []string{"rabbitmq direct listener [] x2 at least"}, nil},
		{"retry topics", "spring.kafka.retry.topic: {enabled: true, attempts: 5, backoff: {delay: 2s, multiplier: 2, random: true, max-delay: 1m}}", []string{"kafka retry topic [] x5, waits up to 1m0s", "cannot R-1"}, []string{"R-1 backoff"}},
		{"a stream", "spring.cloud.stream.bindings.in-0.consumer: {max-attempts: 20}", []string{"in-0 [] x20", "R-2 max_retries"}, nil},
		{"a stream that says nothing of retries", "spring.cloud.stream.bindings: {a-in-0: {destination: t}, a-out-0: {destination: u}, b: {group: g}, c: {destination: v}}", []string{"a-in-0 [] x3, waits up to 10s", "b [] x3", "note 1: where a message of a-in-0 goes after the last attempt (R-8)"}, []string{"a-out-0", "c ["}},
		{"a stream with dead letters", "spring.cloud.stream: {bindings: {a-in-0: {destination: t}, b-in-0: {consumer: {max-attempts: 4}}}, kafka: {bindings: {a-in-0: {consumer: {enableDlq: true}}}, default: {consumer: {enable-dlq: true}}}}", []string{"a-in-0 [] x3", "b-in-0 [] x4", "cannot R-6"}, []string{"note"}},
		{"a listener that says nothing of retries", "spring.rabbitmq.listener: {simple: {prefetch: 5}, direct: {prefetch: 5}}", []string{"rabbitmq simple listener [] x2 at least", "requeued forever, without a wait"}, []string{"direct"}},
		{"a listener that rejects", "spring.rabbitmq.listener: {type: direct, simple: {prefetch: 5}, direct: {default-requeue-rejected: false}}", nil, []string{"x", "note"}},
		{"a listener that acknowledges by itself", "spring.rabbitmq.listener.simple: {acknowledge-mode: manual}", nil, []string{"x", "note"}},
		{"listeners of Kafka", "spring.kafka: {consumer: {group-id: a}, listener: {concurrency: 3}}", []string{"note 1: a message that fails in a Kafka listener is tried 10 times without a wait and then skipped (R-1, R-8)"}, nil},
		{"Kafka below a stream", "spring: {kafka: {consumer: {group-id: a}}, cloud: {stream: {bindings: {a-in-0: {group: g}}, kafka: {default: {consumer: {enable-dlq: true}}}}}}", []string{"a-in-0 [] x3"}, []string{"note"}},
		{"a stream that a profile moves", "spring.cloud.stream: {bindings: {a-in-0: {destination: t}}}\n---\nspring: {config.activate.on-profile: p, cloud.stream.bindings: {a-in-0: {destination: u}, b-in-0: {destination: u}}}\n", []string{"a-in-0 [] x3", "b-in-0 [p] x3"}, []string{"a-in-0 [p]"}},
		{"listeners in a profile too", "spring: {rabbitmq.listener.simple.prefetch: 5, kafka.listener.concurrency: 3}\n---\nspring: {config.activate.on-profile: p, rabbitmq.listener.simple.prefetch: 6, kafka: {listener.concurrency: 4}}\n", []string{"rabbitmq simple listener [] x2", "note 1: a message that fails in a Kafka listener"}, []string{"[p]", "note 3"}},
		{"a word in another file", "spring: {break: 2026}", nil, []string{"x"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("application.yml", tt.text), tt.want, tt.not) })
	}
}

func TestAWS(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"standard", "[default]\nretry_mode = standard\n", []string{
			"aws/default [default] x3 at least", "waits up to 20s", "a client of DynamoDB makes 4",
			"cannot R-7 budget: the retry quota", "a burst of 35 retries, then one for every 14 calls that succeed; SDKs before 10 November 2026, and those for Java and Kotlin, have a burst of 100, and one for five, unless AWS_NEW_RETRIES_2026=true",
			"cannot R-5 : AWS's SDKs wait for x-amz-retry-after at most 5 s longer than their own backoff (base 50ms)", "a base of up to 1 s",
		}, []string{"R-1"}},
		{"adaptive", "[profile a]\nretry_mode=adaptive\nmax_attempts=9 # many\n", []string{"aws/a [a] x9", "3 R-2 max_retries"}, []string{"note"}},
		{"no profile has the variable", "[default]\nretry_mode = standard\nnew_retries_2026 = true\n", []string{"a burst of 100"}, nil},
		{"legacy", "[default]\nretry_mode = legacy\n", []string{"x5 at least", "more for DynamoDB"}, nil},
		{"a number alone", "; mine\n[default]\nmax_attempts = 4\n", []string{"aws/default [default] x4,", "how it waits"}, []string{"at least"}},
		{"no number", "[default]\nmax_attempts = many\n", []string{"at least", `max_attempts "many" is not`}, nil},
		{"nothing of retries", "[default]\nregion = a\n[profile b]\nmax_attempts = 1\n", []string{"quiet 2\n"}, []string{"x"}},
		{"another program", "[server]\nmax_attempts = 9\n", nil, []string{"x", "fault"}},
		{"no profile that says anything", "[default]\nregion = a\n[sso-session b]\nsso_region = a\n[profile c]\nsso_session = b\n", []string{"quiet 2\n", "note 1: no profile sets retry_mode"}, []string{"[", "R-"}},
		{"a default of another program", "[default]\nname = a\n", nil, []string{"quiet", "note"}},
		{"a default of another notation", "default:\n  region: a\n  max_attempts: 9\n", nil, []string{"quiet", "aws"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("config", tt.text), tt.want, tt.not) })
	}
	for _, variables := range []string{"AWS_NEW_RETRIES_2026: true", "AWS_NEW_RETRIES_2026: 'True', AWS_MAX_ATTEMPTS: 3", "AWS_NEW_RETRIES_2026: true, AWS_RETRY_MODE: adaptive"} {
		holds(t, said("compose.yaml", "services: {a: {environment: {"+variables+"}}}\n"), []string{"aws/a [a] x3", "a burst of 35 retries", "x-amz-retry-after"}, []string{"a burst of 100", "up to 1 s"})
	}
	holds(t, said("compose.yaml", "services: {a: {environment: {AWS_NEW_RETRIES_2026: false, AWS_RETRY_MODE: standard}}}\n"), []string{"a burst of 35 retries", "a burst of 100"}, nil)
	holds(t, said("compose.yaml", "services: {a: {environment: {AWS_NEW_RETRIES_2026: true, AWS_RETRY_MODE: legacy}}}\n"), []string{"x5 at least", "few of AWS's SDKs read Retry-After in legacy mode"}, []string{"burst"})
	holds(t, said("compose.yaml", "services: {a: {environment: {AWS_NEW_RETRIES_2026: false}}}\n"), []string{"quiet 1"}, []string{"x", "burst"})
	holds(t, said("a.toml", "[default]\nregion = \"a\"\n"), nil, []string{"quiet"})
	for path, want := range map[string]bool{
		"home/.aws/config": true, "home/.aws/credentials": false, "src/application.properties": true, "etc/config": false,
		"charts/mesh.yaml.gotmpl": true, "a/mesh.yml.j2": true, "a/readme.md.j2": false, "nginx/site.erb": true, strings.ToUpper("a/x.ini"): true,
	} {
		if Candidate(path) != want {
			t.Errorf("Candidate(%q) is not %v", path, want)
		}
	}
}

// What is not read of retries is said, and what is switched off is not.
func TestUnreadSettings(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{
			"of Spring's other parts, and of the program", "a.yml", "spring: {application: {name: a}, cloud: {consul: {retry: {max-attempts: 50}}, vault: {retry: {enabled: false}}}, kafka: {producer: {retries: 50, properties: {retry.backoff.ms: 5}}, retry: {topic: {enabled: false}}}}\napp: {retry: {max-attempts: 50, b: 1}, retries: 0, retry-on: false, retry-delivery-attempts: 9}\n",
			[]string{"spring.cloud.consul.retry.max-attempts has retry settings", "spring.kafka.producer.retries has retry settings", "properties.retry.backoff.ms has retry settings", "app.retry has retry settings", "app.retry-delivery-attempts has retry settings"},
			[]string{"vault", "app.retries", "app.retry-on", "topic"},
		},
		{"hedging alone", "a.yml", "spring: {application: {name: a}}\nhedging: {maxHedgedAttempts: 10}\n", []string{"hedging.maxHedgedAttempts has retry settings"}, nil},
		{"a duration of a template", "t.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{timeout: $T, retries: {attempts: 2}, route: [{destination: {host: a}}]}]}\n", []string{`a: "$T" is not a duration, so it was not judged`}, nil},
		{"a share of a template", "t.yaml", "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: a}\nspec: {retryBudget: {retryRatio: $R, minRetriesPerSecond: 1}, routes: [{isRetryable: true, condition: {method: GET}}]}\n", []string{`a: "$R" is not a number, so the budget's share is unknown`}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}
