package grpcretry

import (
	"context"
	"maps"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/uuid"
)

// WithKey returns a context whose calls carry the idempotency key in their
// metadata, the same in every attempt, and may so be retried. Use it only
// for servers that honor keys. Make one key per logical operation, with
// idempotency.NewKey.
func WithKey(ctx context.Context, key string) context.Context {
	return forbear.WithIdempotencyKey(metadata.AppendToOutgoingContext(ctx, HeaderKey, key), key)
}

// generateKey gives a call that needs a key and has none one of its own.
func (c *client) generateKey(ctx context.Context, method string) context.Context {
	if c.idempotent(method) {
		return ctx
	}
	if key, _ := keyOf(ctx); key != "" {
		return ctx
	}
	return WithKey(ctx, uuid.New())
}

// keyOf returns the key that a call goes out with, and whether it goes out with
// any metadata at all.
func keyOf(ctx context.Context) (key string, own bool) {
	md, own := metadata.FromOutgoingContext(ctx)
	if v := md[HeaderKey]; len(v) > 0 {
		key = idemkey.Text(v[0])
	}
	return key, own
}

// facts completes what the decision must know of a call. It is asked after a
// failure only: a success pays nothing for it. own says whether the call has
// metadata.
func (c *client) facts(ctx context.Context, method string, s *forbear.State) (own bool) {
	s.NeedsKey = !c.idempotent(method)
	s.Key, own = keyOf(ctx)
	s.Refreshable = c.tokens != nil
	return own
}

// idempotent reports whether a method is safe to repeat by itself: because the
// options or its .proto say so.
func (c *client) idempotent(method string) bool {
	if c.declared != nil && c.declared(method) {
		return true
	}
	known := c.levels.Load()
	if known != nil {
		if yes, ok := (*known)[method]; ok {
			return yes
		}
	}
	yes := declaredIdempotent(method)
	if known == nil || len(*known) < maxMethods {
		next := map[string]bool{}
		if known != nil {
			maps.Copy(next, *known)
		}
		next[method] = yes
		c.levels.CompareAndSwap(known, &next) // a caller that comes second asks again
	}
	return yes
}

// maxMethods bounds the cache: a connection's methods come from code.
const maxMethods = 4096

// declaredIdempotent looks the method up in the descriptors that are linked
// into the program.
func declaredIdempotent(method string) bool {
	m := methodOf(method)
	if m == nil {
		return false
	}
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

// methodOf returns the descriptor of a method, or nil where none is linked into the
// program.
func methodOf(method string) protoreflect.MethodDescriptor {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	m, _ := d.(protoreflect.MethodDescriptor)
	return m
}

// methodSet has full methods, and services as "/package.Service/*".
type methodSet map[string]bool

func newMethodSet(methods []string) methodSet {
	set := make(methodSet, len(methods))
	for _, m := range methods {
		set[m] = true
	}
	return set
}

// has reports whether the set has the method, or the whole of its service.
func (s methodSet) has(method string) bool {
	return s[method] || s[serviceOf(method)+"*"]
}

// serviceOf returns "/package.Service/" of "/package.Service/Method".
func serviceOf(method string) string { return method[:strings.LastIndexByte(method, '/')+1] }
