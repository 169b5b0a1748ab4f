package interop

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"
	istiov1 "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayxv1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/forbear-go/forbear/policyfile/foreign"
)

// drift lists what the readers of policyfile/foreign know: the fields of the messages
// that they read, as files spell them.
var drift = []struct {
	of      any
	readers string // files of policyfile/foreign
	read    string
	unread  string // about retries, and not judged
	other   string // not about retries
}{
	{
		&routev3.RouteConfiguration{}, "envoy*.go", "name virtual_hosts request_headers_to_add request_headers_to_remove", "",
		"vhds internal_only_headers response_headers_to_add response_headers_to_remove most_specific_header_mutations_wins validate_clusters max_direct_response_body_size_bytes cluster_specifier_plugins request_mirror_policies ignore_port_in_host_matching vhost_header ignore_path_parameters_in_path_matching typed_per_filter_config metadata route_specifiers",
	},
	{
		&routev3.VirtualHost{}, "envoy*.go", "name domains routes request_headers_to_add request_headers_to_remove retry_policy retry_policy_typed_config hedge_policy per_request_buffer_limit_bytes request_body_buffer_limit", "matcher include_request_attempt_count include_attempt_count_in_response include_is_timeout_retry_header",
		"require_tls virtual_clusters rate_limits response_headers_to_add response_headers_to_remove cors typed_per_filter_config request_mirror_policies metadata route_specifiers",
	},
	{
		&routev3.Route{}, "envoy*.go", "name match route request_headers_to_add request_headers_to_remove per_request_buffer_limit_bytes request_body_buffer_limit", "",
		"redirect direct_response filter_action non_forwarding_action metadata decorator typed_per_filter_config response_headers_to_add response_headers_to_remove tracing stat_prefix route_specifiers",
	},
	{
		&routev3.RouteAction{}, "envoy*.go", "cluster weighted_clusters timeout retry_policy retry_policy_typed_config priority hedge_policy max_stream_duration", "idle_timeout early_data_policy max_grpc_timeout grpc_timeout_offset",
		"cluster_header cluster_specifier_plugin inline_cluster_specifier_plugin cluster_not_found_response_code metadata_match prefix_rewrite regex_rewrite path_rewrite_policy path_rewrite host_rewrite_literal auto_host_rewrite host_rewrite_header host_rewrite_path_regex host_rewrite append_x_forwarded_host flush_timeout request_mirror_policies rate_limits include_vh_rate_limits hash_policy cors upgrade_configs internal_redirect_policy internal_redirect_action max_internal_redirects",
	},
	{
		&routev3.WeightedCluster_ClusterWeight{}, "envoy*.go", "name weight request_headers_to_add request_headers_to_remove", "",
		"cluster_header metadata_match response_headers_to_add response_headers_to_remove typed_per_filter_config host_rewrite_literal",
	},
	{
		&routev3.RetryPolicy{}, "envoy*.go", "retry_on num_retries per_try_timeout per_try_idle_timeout retriable_status_codes retry_back_off rate_limited_retry_back_off retriable_headers retriable_request_headers",
		"retry_priority retry_host_predicate retry_options_predicates host_selection_retry_max_attempts refresh_cluster_on_retry", "",
	},
	{&routev3.RetryPolicy_RetryBackOff{}, "envoy*.go", "base_interval max_interval", "", ""},
	{&routev3.RetryPolicy_RateLimitedRetryBackOff{}, "envoy*.go", "reset_headers max_interval", "", ""},
	{&routev3.RetryPolicy_ResetHeader{}, "envoy*.go", "name", "format", ""},
	{&routev3.HedgePolicy{}, "envoy*.go", "hedge_on_per_try_timeout", "initial_requests additional_request_chance", ""},
	{&routev3.RouteAction_MaxStreamDuration{}, "envoy*.go", "max_stream_duration", "grpc_timeout_header_max grpc_timeout_header_offset", ""},
	{&clusterv3.CircuitBreakers{}, "envoy*.go", "thresholds", "", "per_host_thresholds"},
	{&clusterv3.CircuitBreakers_Thresholds{}, "envoy*.go", "priority retry_budget", "max_retries", "max_connections max_pending_requests max_requests track_remaining max_connection_pools"},
	{&clusterv3.CircuitBreakers_Thresholds_RetryBudget{}, "envoy*.go", "budget_percent min_retry_concurrency budget_interval", "", ""},
	{
		&tlsv3.CommonTlsContext{}, "envoy*.go", "validation_context validation_context_sds_secret_config combined_validation_context validation_context_certificate_provider validation_context_certificate_provider_instance", "",
		"tls_params tls_certificates tls_certificate_sds_secret_configs tls_certificate_provider_instance custom_tls_certificate_selector tls_certificate_certificate_provider tls_certificate_certificate_provider_instance alpn_protocols custom_handshaker key_log",
	},
	{
		&tlsv3.CertificateValidationContext{}, "envoy*.go", "trusted_ca ca_certificate_provider_instance system_root_certs verify_certificate_spki verify_certificate_hash allow_expired_certificate trust_chain_verification custom_validator_config", "",
		"watched_directory match_typed_subject_alt_names match_subject_alt_names require_signed_certificate_timestamp crl only_verify_leaf_cert_crl max_verify_depth suppress_client_ca_list",
	},

	{&istiov1.VirtualService{}, "istio*.go", "http tls tcp", "", "hosts gateways exportTo"},
	{&istiov1.HTTPRoute{}, "istio*.go", "name match route delegate timeout retries headers", "", "redirect directResponse rewrite fault mirror mirrors mirrorPercent mirrorPercentage corsPolicy"},
	{&istiov1.HTTPRetry{}, "istio*.go", "attempts perTryTimeout retryOn backoff", "retryRemoteLocalities retryIgnorePreviousHosts", ""},
	{&istiov1.DestinationRule{}, "istio*.go", "host trafficPolicy subsets", "", "exportTo workloadSelector"},
	{&istiov1.Subset{}, "istio*.go", "name trafficPolicy", "", "labels"},
	{&istiov1.TrafficPolicy{}, "istio*.go", "connectionPool tls portLevelSettings retryBudget", "", "loadBalancer outlierDetection tunnel proxyProtocol"},
	{&istiov1.TrafficPolicy_PortTrafficPolicy{}, "istio*.go", "port tls", "", "loadBalancer connectionPool outlierDetection"},
	{&istiov1.TrafficPolicy_RetryBudget{}, "istio*.go", "percent minRetryConcurrency budgetInterval", "", ""},
	{&istiov1.ConnectionPoolSettings_TCPSettings{}, "istio*.go", "connectTimeout", "", "maxConnections tcpKeepalive maxConnectionDuration idleTimeout"},
	{&istiov1.ConnectionPoolSettings_HTTPSettings{}, "istio*.go", "", "maxRetries", "http1MaxPendingRequests http2MaxRequests maxRequestsPerConnection idleTimeout h2UpgradePolicy useClientProtocol maxConcurrentStreams http2KeepAlive"},
	{&istiov1.ClientTLSSettings{}, "istio*.go", "insecureSkipVerify", "", "mode clientCertificate privateKey caCertificates credentialName subjectAltNames sni caCrl caCertCredentialName"},
	{
		&meshv1.MeshConfig{}, "istio*.go", "defaultHttpRetryPolicy defaultInboundHttpRetryPolicy", "connectTimeout defaultTrafficPolicy",
		"proxyListenPort proxyInboundListenPort proxyHttpPort hboneIdleTimeout protocolDetectionTimeout tcpKeepalive ingressClass ingressService ingressControllerMode ingressSelector enableTracing accessLogFile accessLogFormat accessLogEncoding enableEnvoyAccessLogService disableEnvoyListenerLog defaultConfig outboundTrafficPolicy inboundTrafficPolicy configSources enableAutoMtls trustDomain trustDomainAliases caCertificates defaultServiceExportTo defaultVirtualServiceExportTo defaultDestinationRuleExportTo rootNamespace localityLbSetting zoneAwareLbSetting dnsRefreshRate h2UpgradePolicy inboundClusterStatName outboundClusterStatName certificates serviceSettings serviceScopeConfigs enablePrometheusMerge verifyCertificateAtClient ca extensionProviders defaultProviders discoverySelectors pathNormalization meshMTLS tlsDefaults serviceEntryVisibility",
	},

	{&gatewayv1.HTTPRouteRule{}, "gatewayapi.go", "name matches backendRefs timeouts retry filters", "", "sessionPersistence"},
	{&gatewayv1.HTTPRouteRetry{}, "gatewayapi.go", "codes attempts backoff", "", ""},
	{&gatewayv1.HTTPRouteTimeouts{}, "gatewayapi.go", "request backendRequest", "", ""},
	{&gatewayv1.GRPCRouteRule{}, "gatewayapi.go", "name matches backendRefs", "", "filters sessionPersistence"},
	{&gatewayxv1.BackendTrafficPolicySpec{}, "gatewayapi.go", "targetRefs retryConstraint", "", "sessionPersistence"},
	{&gatewayxv1.RetryConstraint{}, "gatewayapi.go", "budget minRetryRate", "", ""},
	{&gatewayxv1.BudgetDetails{}, "gatewayapi.go", "percent interval", "", ""},
	{&gatewayxv1.RequestRate{}, "gatewayapi.go", "count interval", "", ""},

	// No file sets these. TestAWS has their defaults.
	{&retry.StandardOptions{}, "aws.go", "", "MaxAttempts MaxBackoff Backoff BaseDelay Retryables Timeouts Throttles RateLimiter RetryCost RetryTimeoutCost ThrottlingRetryCost NoRetryIncrement", ""},
	{&retry.AdaptiveModeOptions{}, "aws.go", "", "FailOnNoAttemptTokens RequestCost Throttles StandardOptions", ""},
	{
		&aws.Config{}, "aws.go", "", "RetryMaxAttempts RetryMode Retryer",
		"Region Credentials BearerAuthTokenProvider HTTPClient EndpointResolver EndpointResolverWithOptions ConfigSources APIOptions Logger ClientLogMode DefaultsMode RuntimeEnvironment AppID BaseEndpoint DisableRequestCompression RequestMinCompressSizeBytes DisableClockSkewCorrection AccountIDEndpointMode RequestChecksumCalculation ResponseChecksumValidation Interceptors AuthSchemePreference ServiceOptions RestrictFilePermissions",
	},
}

// A newer version of a product may have fields that decide on retries: no reader knows
// them, and what it says of a file is no longer true.
func TestFields(t *testing.T) {
	for _, tt := range drift {
		name := strings.TrimPrefix(fmt.Sprintf("%T", tt.of), "*")
		t.Run(name, func(t *testing.T) {
			var source strings.Builder
			files, err := filepath.Glob("../../foreign/" + tt.readers)
			if err != nil || len(files) == 0 {
				t.Fatalf("no file %s: %v", tt.readers, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				source.WriteString(string(text))
			}
			listed := map[string]bool{}
			for field := range strings.FieldsSeq(tt.read + " " + tt.unread + " " + tt.other) {
				listed[field] = true
			}
			for _, field := range fields(tt.of) {
				if !listed[field] {
					t.Errorf("%s has a new field %s: read it in policyfile/foreign/%s if it decides on retries, list it in drift, and bring docs/versions.md up to date", name, field, tt.readers)
				}
				delete(listed, field)
			}
			for field := range listed {
				t.Errorf("%s has no field %s any more: look at what took its place, and let policyfile/foreign/%s and drift follow", name, field, tt.readers)
			}
			for field := range strings.FieldsSeq(tt.read) {
				if !strings.Contains(source.String(), `"`+field+`"`) {
					t.Errorf("%s.%s is listed as read, and policyfile/foreign/%s does not name it: list it as unread", name, field, tt.readers)
				}
			}
		})
	}
}

// fields are the names that a file has for what a message or a struct holds: Envoy's are
// those of its protocol buffers, and Istio's their names in JSON.
func fields(of any) (names []string) {
	m, ok := of.(proto.Message)
	if !ok {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of).Elem()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, cmp.Or(name, f.Name))
		}
		return names
	}
	d := m.ProtoReflect().Descriptor()
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); strings.HasPrefix(string(d.FullName()), "envoy.") {
			names = append(names, string(f.Name()))
		} else {
			names = append(names, f.JSONName())
		}
	}
	return names
}

// What check says of AWS's standard mode are the defaults of the SDK.
func TestAWS(t *testing.T) {
	var o retry.StandardOptions
	standard := retry.NewStandard(func(defaults *retry.StandardOptions) { o = *defaults })
	read := foreign.Read(foreign.Open("config", []byte("[default]\nretry_mode = standard\n"), "aws").Parts)
	d := &read[0].File.Dependencies[0]
	if got := d.Policy.Retries() + 1; got != standard.MaxAttempts() || d.Policy.Backoff.Cap != o.MaxBackoff {
		t.Errorf("%d attempts, waits up to %v: want %d and %v", got, d.Policy.Backoff.Cap, standard.MaxAttempts(), o.MaxBackoff)
	}
	var longest time.Duration
	for range 1000 { // below half of the base, with a chance of 2^-1000
		wait, err := standard.RetryDelay(1, errors.New("no throttling"))
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, wait)
	}
	if base := d.Policy.Backoff.Base; longest > base || longest < base/2 {
		t.Errorf("the SDK's first wait is up to %v: want %v", longest, base)
	}
	said := fmt.Sprint(read[0].File.Limits)
	for _, want := range []string{
		fmt.Sprintf("a burst of %d retries, then one for every %d calls", retry.DefaultRetryRateTokens/o.RetryCost, o.RetryCost/o.NoRetryIncrement),
		fmt.Sprintf("(base %v)", d.Policy.Backoff.Base),
	} {
		if !strings.Contains(said, want) {
			t.Errorf("want %q in %s", want, said)
		}
	}
}

// A version is raised together with a look at what it brings.
func TestVersions(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	required := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s(\S+) (v\S+)$`).FindAllStringSubmatch(read("go.mod"), -1) {
		required[m[1]] = m[2]
	}
	page := read("../../../docs/versions.md")
	for _, module := range []string{
		"github.com/aws/aws-sdk-go-v2", "github.com/envoyproxy/go-control-plane/envoy", "google.golang.org/grpc", "istio.io/api", "sigs.k8s.io/gateway-api",
	} {
		if want := "`" + module + " " + required[module] + "`"; required[module] == "" || !strings.Contains(page, want) {
			t.Errorf("docs/versions.md does not name %s: look at what is new for its reader, and write the version and the day there", want)
		}
	}
}
