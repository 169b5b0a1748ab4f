package published

import (
	"slices"
	"strconv"
	"strings"
)

// operations are those of the JSON API of Google Cloud Storage, by verb.
type operations map[string]string

// The classes of operations in storage/v1/retry_tests.json of
// github.com/googleapis/conformance-tests at 998891a. The verbs are those of the API's
// reference.
var (
	// always may be repeated as they are.
	always = operations{
		"GET": "bucket_acl.get bucket_acl.list buckets.get buckets.getIamPolicy buckets.list buckets.testIamPermissions " +
			"default_object_acl.get default_object_acl.list hmacKey.get hmacKey.list notifications.get notifications.list " +
			"object_acl.get object_acl.list objects.get objects.list serviceaccount.get",
		"DELETE": "buckets.delete hmacKey.delete notifications.delete",
		"POST":   "buckets.insert buckets.lockRetentionPolicy",
	}
	// conditional may be repeated with a precondition, such as a generation.
	conditional = operations{
		"PUT":    "buckets.setIamPolicy buckets.update hmacKey.update objects.update",
		"DELETE": "objects.delete",
		"PATCH":  "buckets.patch objects.patch",
		"POST":   "objects.compose objects.copy objects.insert objects.rewrite",
	}
	// never may be repeated.
	never = operations{
		"PUT":    "bucket_acl.update default_object_acl.update object_acl.update",
		"DELETE": "bucket_acl.delete default_object_acl.delete object_acl.delete",
		"PATCH":  "bucket_acl.patch default_object_acl.patch object_acl.patch",
		"POST": "bucket_acl.insert default_object_acl.insert hmacKey.create notifications.insert " +
			"object_acl.insert",
	}
	upload   = operations{"PUT": "objects.insert"} // to the URL of an upload's session
	download = operations{"GET": "objects.get"}
)

// scenarios are those of the file, in its order. Each operation is called once for each
// list of faults.
var scenarios = []struct {
	of      []operations
	faults  []string // of one call: what the server does to the first sends
	repeat  bool     // the client is to repeat the call
	succeed bool
}{
	{[]operations{always}, []string{"503 503", "reset reset", "reset 503"}, true, true},
	{[]operations{conditional}, []string{"503 503", "reset reset", "reset 503"}, true, true},
	{[]operations{conditional}, []string{"503", "reset"}, false, false},
	{[]operations{never}, []string{"503", "reset"}, false, false},
	{[]operations{always, conditional, never}, []string{"400", "401"}, false, false},
	{[]operations{always, conditional}, []string{"503 400", "reset 401"}, true, false},
	{[]operations{upload}, []string{"reset 503", "408", "503@256K", "503@8192K 408"}, true, true},
	{[]operations{download}, []string{"broken broken", "broken@256K"}, true, true},
}

// trial is one call.
type trial struct {
	scenario        int // from 1
	verb, name      string
	faults          []string
	conditional     bool // it carries a precondition
	repeat, succeed bool
}

// trials returns all of them, in an order that is always the same.
func trials() (all []trial) {
	for i, s := range scenarios {
		for _, class := range s.of {
			for _, verb := range []string{"GET", "PUT", "DELETE", "PATCH", "POST"} {
				for name := range strings.FieldsSeq(class[verb]) {
					for _, faults := range s.faults {
						withCondition := s.repeat && slices.Contains(strings.Fields(conditional[verb]), name)
						all = append(all, trial{i + 1, verb, name, strings.Fields(faults), withCondition, s.repeat, s.succeed})
					}
				}
			}
		}
	}
	return all
}

// String names the trial, as in "2 PATCH buckets.patch: 503 503".
func (t *trial) String() string {
	return strconv.Itoa(t.scenario) + " " + t.verb + " " + t.name + ": " + strings.Join(t.faults, " ")
}

// final reports whether the first fault ends the call, whoever sends it.
func (t *trial) final() bool { return t.faults[0] == "400" || t.faults[0] == "401" }

// large reports whether the body is more than a gateway keeps for a retry.
func (t *trial) large() bool { return t.verb == "PUT" && t.name == "objects.insert" }

// inBody reports whether the faults come after the headers of a good response.
func (t *trial) inBody() bool { return strings.HasPrefix(t.faults[0], "broken") }

// needsKey reports whether R-6 asks for an idempotency key.
func (t *trial) needsKey() bool { return t.verb == "POST" || t.verb == "PATCH" }
