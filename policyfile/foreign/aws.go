package foreign

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The retry modes of AWS's SDKs (the page "Retry behavior" of their reference guide).
// What the oldest one does is up to each SDK; five attempts is the figure of Python's
// and of the command line.
//
// The standard mode has had other figures since 10 November 2026, in all SDKs but those for
// Java and Kotlin (AWS's post "Updated default retry behavior for AWS SDKs and tools";
// aws-sdk-go-v2 v1.48.0, retry.StandardOptions). From May 2026 a variable chose them: later
// SDKs have no such setting, and no profile ever had one.
const (
	awsStandard = 3
	awsLegacy   = 5
	awsBase     = 50 * time.Millisecond // 1 s for throttled calls, and in most SDKs before for all
	awsCap      = 20 * time.Second
	awsNewer    = "AWS_NEW_RETRIES_2026"
)

// awsKeys are settings of a profile that no other program's section has.
var awsKeys = []string{"retry_mode", "max_attempts", "region", "role_arn", "source_profile", "credential_process", "sso_session", "sso_start_url"}

// awsProfileName returns the name of a profile that a pair is, or "". A section of this
// notation stands where its name does, and a map of another one behind its key.
func awsProfileName(p tree.Pair) string {
	name := strings.Fields(p.Key)
	if len(name) == 0 || !p.Value.Map() || p.At != p.Value.At || name[0] != "default" && name[0] != "profile" {
		return ""
	}
	return name[len(name)-1]
}

// claimsAWS knows a shared config file of AWS by a profile in it, and a container by the
// variables that set retries.
func claimsAWS(n *tree.Node) bool {
	toml := strings.EqualFold(filepath.Ext(n.At.File), ".toml") // which has sections too
	return awsVariables(n) != nil || !toml && slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool {
		return awsProfileName(p) != "" && slices.ContainsFunc(awsKeys, p.Value.Has)
	})
}

// ownAWS returns the variables of a container, or the profiles of a config file.
func ownAWS(n *tree.Node) (own []*tree.Node) {
	for _, p := range awsVariables(n).Fields() {
		own = append(own, p.Value)
	}
	for _, item := range n.Get("env", "environment").List() {
		if awsNames[item.Get("name").Text()] != "" {
			own = append(own, item)
		}
	}
	for _, p := range n.Pairs {
		if awsProfileName(p) != "" {
			own = append(own, p.Value)
		}
	}
	return own
}

// awsNames are the names in a config file of what variables set. One has no other name.
var awsNames = map[string]string{"AWS_RETRY_MODE": "retry_mode", "AWS_MAX_ATTEMPTS": "max_attempts", awsNewer: awsNewer}

// awsVariables returns what the environment of a container sets, by the names of the
// config file, or nil. Kubernetes and AWS write it as a list of maps, Compose as a map
// or a list of texts.
func awsVariables(container *tree.Node) (set *tree.Node) {
	put := func(name string, at policyfile.Position, v *tree.Node) {
		if key := awsNames[name]; key != "" {
			if set == nil {
				set = &tree.Node{Kind: tree.Map, At: at}
			}
			set.Pairs = append(set.Pairs, tree.Pair{Key: key, At: at, Value: v})
		}
	}
	environment := container.Get("env", "environment")
	for _, p := range environment.Fields() {
		put(p.Key, p.At, p.Value)
	}
	for _, item := range environment.List() {
		if name, value, ok := strings.Cut(item.Text(), "="); ok {
			put(name, item.At, &tree.Node{Value: value, At: item.At})
		}
		// What a secret or a ConfigMap holds is not known here.
		v := item.Get("value")
		if v == nil {
			v = &tree.Node{Value: "from elsewhere", At: item.At}
		}
		put(item.Get("name").Text(), item.At, v)
	}
	return set
}

// aws reads the profiles of a shared config file, and the variables of containers.
func (r *reader) aws() {
	for _, part := range r.parts {
		if set := awsVariables(part.Root); set != nil {
			name := part.Root.Get("name", "container_name").Text()
			r.awsProfile(cmp.Or(name, part.Path[strings.LastIndexByte(part.Path, '.')+1:], "container"), tree.Pair{At: set.At, Value: set})
			continue
		}
		silent := true
		for _, p := range part.Root.Pairs {
			if name := awsProfileName(p); name != "" {
				silent = r.awsProfile(name, p) && silent
			}
		}
		if silent {
			r.unjudged(part.Root.At, "", "no profile sets retry_mode or max_attempts, so each SDK uses its own default: %d attempts in standard mode, 4 for DynamoDB, often more in legacy mode", awsStandard)
		}
	}
}

// awsProfile reads one profile, and reports whether it says nothing of retries: then it
// has the mode of each SDK.
func (r *reader) awsProfile(name string, p tree.Pair) (silent bool) {
	mode, count := p.Value.Get("retry_mode"), p.Value.Get("max_attempts")
	newer := strings.EqualFold(p.Value.Get(awsNewer).Text(), "true")
	if mode == nil && count == nil && !newer {
		r.quiet(p.At)
		return true
	}
	d := policyfile.Dependency{Name: "aws/" + name, Route: name, At: p.At, Protocol: "http"}
	// The newer figures came with the standard mode as every SDK's default.
	standard := mode.Text() == "standard" || mode.Text() == "adaptive" || mode == nil && newer
	if modes := []string{"legacy", "standard", "adaptive"}; mode != nil && !slices.Contains(modes, mode.Text()) {
		r.misspelt(mode.At, &d, mode.Text(), "is not a retry_mode, and SDKs refuse it", nearest.Hint(mode.Text(), modes, ""))
	}
	place, attempts := p.At, float64(awsLegacy)
	if standard {
		place, attempts = placed(mode, p.At), awsStandard
	}
	if count != nil {
		place = count.At
		m, ok := count.Number()
		if !ok || m < 1 {
			r.open(count.At, &d, "%s: max_attempts %q is not a number over 0", d.Name, count.Text())
		} else {
			attempts = m
		}
	} else if standard {
		r.open(place, &d, "%s: without max_attempts a client of DynamoDB makes 4 attempts, or up to 10 in SDKs before 10 November 2026", d.Name)
	} else {
		r.open(place, &d, "%s: without max_attempts each SDK has its own number in legacy mode: %d here, more for DynamoDB", d.Name, awsLegacy)
	}
	if retries(&d, int(min(attempts, 1<<20))-1, place); d.Policy.Disabled && !d.AtLeast {
		r.quiet(p.At)
		return false
	}
	// Full jitter below 2^n times the base, and below 20 s.
	d.Policy.Backoff.Base, d.Policy.Backoff.Cap = awsBase, awsCap
	if !standard {
		r.unjudged(placed(mode, p.At), d.Name, "%s: each SDK decides how it waits and what it retries: set retry_mode to standard", d.Name)
	}
	unbounded(&d)
	r.awsLacks(&d, standard, newer)
	r.add(d)
	return false
}

// awsLacks records what no mode has. The retry quota of the standard mode is a bucket of
// 500 tokens for each client: a retry takes 14 of them, one of a throttled call 5, and gives
// them back when it succeeds; a call that succeeds at once brings 1. Before, a retry took 5,
// or 10 after a timeout. x-amz-retry-after is held between the SDK's own wait and 5 s more.
func (r *reader) awsLacks(d *policyfile.Dependency, standard, newer bool) {
	r.cannot(d, "R-3", "total.missing", "AWS's SDKs have no setting here that bounds a call and its retries together")
	r.cannot(d, "R-6", "", "AWS's SDKs retry every operation, including writes without a client token")
	if !standard {
		r.cannot(d, "R-5", "", "few of AWS's SDKs read Retry-After in legacy mode")
		r.cannot(d, "R-7", "budget", "whether there is a retry quota in legacy mode depends on the SDK")
		return
	}
	before := func(what string) string {
		if newer {
			return ""
		}
		return "; SDKs before 10 November 2026, and those for Java and Kotlin, have " + what + ", unless " + awsNewer + "=true"
	}
	r.cannot(d, "R-5", "", "AWS's SDKs wait for x-amz-retry-after at most 5 s longer than their own backoff (base %v), and few read Retry-After%s",
		awsBase, before("a base of up to 1 s, and few honor either"))
	r.cannot(d, "R-7", "budget", "the retry quota of AWS's SDKs is a bucket per client and not a share of the requests in 30 s: a burst of 35 retries, then one for every 14 calls that succeed%s",
		before("a burst of 100, and one for five"))
}
