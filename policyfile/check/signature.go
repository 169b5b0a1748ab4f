package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/violation"
)

// The namespaces under which waivers are signed. ssh-keygen binds a
// signature to its namespace, so that one for a commit or a release cannot
// be used as an approval. The file of allowed signers says who may use
// which.
const (
	Namespace    = "forbear-waiver"
	NamespaceIAB = "forbear-waiver-iab"
)

// payload is what an approver signs, with the fields in this order. Any
// change to its form invalidates every signature there is.
type payload struct {
	Form       string `json:"form"`
	Service    string `json:"service"`
	ID         string `json:"id"`
	Rule       string `json:"rule"`
	Dependency string `json:"dependency"`
	Reason     string `json:"reason"`
	Owner      string `json:"owner"`
	Ticket     string `json:"ticket"`
	Created    string `json:"created"`
	Expires    string `json:"expires"`
	// Code is the waiver's own and that of its dependency. It is left out where
	// there is none, so that older signatures hold.
	Code []string `json:"code,omitempty"`
	// Files is left out likewise.
	Files []string `json:"files,omitempty"`
	// Lifts holds the values that leave the rule's range, as "max_retries 7",
	// so that a later 9 needs another signature.
	Lifts []string `json:"lifts"`
}

// Payload returns the bytes that the approvers of a waiver of f sign, as one
// line of JSON: everything but the approvals, and the values out of range
// that the waiver lifts. The values are part of it, so that a signature for
// 7 retries does not cover a later 9.
func Payload(f *policyfile.File, w *policyfile.Waiver) []byte {
	lifts := []string{}
	// A waiver for code or files alone lifts no value of a policy.
	if len(w.Files) > 0 {
		lifts = append(lifts, w.Lifts...)
	} else if d, ok := f.Dependency(w.Dependency); ok {
		for _, v := range violation.Of(&d.Policy) {
			if v.Rule == w.Rule {
				lifts = append(lifts, v.Field+" "+d.Value(v.Field))
			}
		}
	}
	// Sorted, so that the payload does not depend on the order of the
	// checks.
	slices.Sort(lifts)
	data, err := json.Marshal(payload{
		"forbear-waiver-v1", f.Service, w.ID, w.Rule, w.Dependency, w.Reason, w.Owner, w.Ticket,
		w.Created.UTC().Format(time.RFC3339), w.Expires.UTC().Format(time.RFC3339), w.CodeIn(f), w.Files, lifts,
	})
	if err != nil {
		panic(err) // strings alone
	}
	return append(data, '\n')
}

// Reasons for which verify refuses a signature. Any other error means that
// it could not be verified.
var (
	errSignature = errors.New("the signature is not valid")
	errSelf      = errors.New("the key belongs to the owner")
)

// verifyTime bounds one run of ssh-keygen. A signing agent that asks for a
// password would otherwise stop a build.
const verifyTime = 10 * time.Second

// verify checks with ssh-keygen that approval a is a's signature over data,
// made with a key of a.By and not of the owner.
//
// The program is used in place of a library because the file of allowed
// signers is its own format, with namespaces, validity periods and
// certificate authorities: what ssh-keygen accepts is what the approvers'
// own tools accept.
func verify(signers string, data []byte, a *policyfile.Approval, owner string) error {
	if _, err := os.Stat(signers); err != nil {
		return fmt.Errorf("the file of allowed signers: %w", err)
	}
	tool, err := exec.LookPath("ssh-keygen")
	if err != nil {
		return errors.New("ssh-keygen is not installed: install OpenSSH")
	}
	// The signature has to be a file; the payload goes through stdin.
	dir, err := os.MkdirTemp("", "forbear-waiver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	signature := filepath.Join(dir, "signature")
	if err := os.WriteFile(signature, []byte(strings.TrimSpace(a.Signature)+"\n"), 0o600); err != nil {
		return err
	}
	// The role chooses the namespace, and the file of allowed signers
	// decides who may use it.
	namespace := Namespace
	if a.Role == "iab" {
		namespace = NamespaceIAB
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifyTime)
	defer cancel()
	check := exec.CommandContext(ctx, tool, "-Y", "verify", "-f", signers, "-I", a.By, "-n", namespace, "-s", signature)
	// The payload is made from the file as it is now: any change to the
	// waiver breaks the signature.
	check.Stdin = bytes.NewReader(data)
	if err := check.Run(); err != nil {
		if _, ran := errors.AsType[*exec.ExitError](err); ran && ctx.Err() == nil {
			// It ran and refused. An exit by timeout or signal is not a
			// refusal.
			return errSignature
		}
		return fmt.Errorf("running ssh-keygen: %w", err)
	}
	// The same key may be listed under the owner's name too: then the owner
	// has approved the waiver under another name.
	out, err := exec.CommandContext(ctx, tool, "-Y", "find-principals", "-f", signers, "-s", signature).Output()
	if err != nil {
		return errSignature
	}
	for line := range strings.Lines(string(out)) {
		if slices.ContainsFunc(strings.Split(strings.TrimSpace(line), ","), func(name string) bool { return strings.EqualFold(name, owner) }) {
			return errSelf
		}
	}
	return nil
}
