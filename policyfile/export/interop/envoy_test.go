//forbear:plain it hands configurations to their readers, on one goroutine
package interop

import (
	"math"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/export"
)

// Envoy's own messages take the bootstrap, with every rule about their values, and
// say of the retries what the policy says.
func TestEnvoy(t *testing.T) {
	exported(t, "envoy", func(t *testing.T, p forbear.Policy, out *export.Export) {
		docs := documents(t, out.Config)
		if len(docs) != 1 {
			t.Fatalf("%d documents", len(docs))
		}
		var bootstrap bootstrapv3.Bootstrap
		strictly(t, docs[0], &bootstrap)
		validate(t, &bootstrap)
		budget := bootstrap.GetStaticResources().GetClusters()[0].GetCircuitBreakers().GetThresholds()[0].GetRetryBudget()
		if got, want := budget.GetBudgetPercent().GetValue(), 100*p.Budget.Ratio; math.Abs(got-want) > 1e-6 {
			t.Errorf("a budget of %v %%, want %v %%", got, want)
		}
		retried := 0
		host := virtualHost(t, &bootstrap)
		if got := host.GetRequestBodyBufferLimit().GetValue(); (got == bodyLimit) != (p.Retries() > 0) {
			t.Errorf("%d bytes of a body are kept, with %d retries in the policy", got, p.Retries())
		}
		for _, r := range host.GetRoutes() {
			retry := r.GetRoute().GetRetryPolicy()
			if got := retry.GetPerTryTimeout().AsDuration(); got != p.AttemptTimeout() {
				t.Errorf("an attempt may take %s, want %s", got, p.AttemptTimeout())
			}
			if got := r.GetRoute().GetTimeout().AsDuration(); got != p.Total {
				t.Errorf("a call may take %s, want %s", got, p.Total)
			}
			if retry.GetRetryOn() == "" {
				continue
			}
			retried++
			if got := int(retry.GetNumRetries().GetValue()); got != p.Retries() {
				t.Errorf("%d retries, want %d", got, p.Retries())
			}
			if got := retry.GetRetryBackOff(); got.GetBaseInterval().AsDuration() != p.Backoff.Base || got.GetMaxInterval().AsDuration() != p.Backoff.Cap {
				t.Errorf("backoff %v, want %s to %s", got, p.Backoff.Base, p.Backoff.Cap)
			}
		}
		if (retried > 0) != retries(&p) {
			t.Errorf("%d routes are retried, with %d retries in the policy", retried, p.Retries())
		}
	})
}

// virtualHost is that of the one listener.
func virtualHost(t *testing.T, b *bootstrapv3.Bootstrap) *routev3.VirtualHost {
	t.Helper()
	filter := b.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0]
	var hcm hcmv3.HttpConnectionManager
	if err := filter.GetTypedConfig().UnmarshalTo(&hcm); err != nil {
		t.Fatal(err)
	}
	return hcm.GetRouteConfig().GetVirtualHosts()[0]
}

// validate holds a message, and each extension in it, against the rules that Envoy's
// protocol buffers have about values.
func validate(t *testing.T, m proto.Message) {
	t.Helper()
	v, ok := m.(interface{ ValidateAll() error })
	if !ok {
		t.Fatalf("%T has no rules", m)
	}
	if err := v.ValidateAll(); err != nil {
		t.Errorf("%T: %v", m, err)
	}
	extensions(t, m.ProtoReflect())
}

// extensions looks for extensions in a message, which its own rules do not reach.
func extensions(t *testing.T, m protoreflect.Message) {
	t.Helper()
	if a, ok := m.Interface().(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		validate(t, inner)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				if f.MapValue().Message() != nil {
					extensions(t, v.Message())
				}
				return true
			})
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				extensions(t, v.List().Get(i).Message())
			}
		default:
			extensions(t, v.Message())
		}
		return true
	})
}
