package nonretryable

import "github.com/forbear-go/forbear/lint/internal/rule"

// certificates reports branches on an x509 error that lead to another attempt.
// A recursion has no branches that could be followed, so only loops are judged.
func certificates(p *rule.Pass) {
	for _, r := range p.Regions {
		if r.Loop == nil || !r.OnCertificateError() {
			continue
		}
		f := rule.RegionFinding(r, rule.High, "retries "+rule.Ops(r)+" on a certificate error")
		f.Standard = "R-9" // which cannot be waived
		p.Report(f)
	}
}
