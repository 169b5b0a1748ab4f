// Package lattice retries calls that the Lattice SDKs make, in one layer. It
// imports no SDK and fits every version of them.
//
// The SDKs retry by themselves: without a look at the method or an idempotency
// key, with a jitter of 10 %, and with sleeps that no context ends, one of them
// after the last attempt. The place to retry is therefore under the SDK. A
// [Client] is the HTTP client that the SDK gets:
//
//	policy := lattice.Policy()
//	r, err := forbear.New("lattice", policy)
//	sdk := client.NewClient(option.WithHTTPClient(lattice.NewClient(r, lattice.Options{})))
//
// It retries inside, by the vendor's lists of statuses under the rules of the
// standard, and ends with an error of its own where the SDK would retry once
// more: the SDK returns an error at once. It sends nothing without
// Authorization.
//
// Those who cannot change the SDK's client wrap their calls in a [Utility] and
// switch the SDK's retries off. It warns when they are on.
//
// For gRPC, the codes are those of the profile "lattice"; the module grpcretry
// reads them. [ClientCredentials] is the source of tokens for both.
package lattice
