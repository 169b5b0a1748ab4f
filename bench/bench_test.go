package bench

import "testing"

// BenchmarkPeers is for benchstat and profiles; the table of `make bench`
// compares better, since there the peers take turns.
func BenchmarkPeers(b *testing.B) {
	for _, s := range Scenarios() {
		for _, p := range s.Peers {
			b.Run(s.ID+"/"+p.Name, func(b *testing.B) {
				b.ReportAllocs()
				if s.Parallel {
					b.RunParallel(func(pb *testing.PB) {
						for work := p.New(); pb.Next(); {
							_ = work()
						}
					})
					return
				}
				for work := p.New(); b.Loop(); {
					_ = work()
				}
			})
		}
	}
}
