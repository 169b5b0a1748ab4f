package dispatch

import (
	"cmp"
	"iter"
	"slices"
	"sync"
)

// lanes holds the lane of each endpoint, by its id and by its application. A change
// costs the same however many there are. One goroutine changes it at a time,
// [Dispatcher.Load]'s; any may read.
type lanes struct {
	byID     sync.Map // *lane
	byTenant sync.Map // []*lane, by the ids of their endpoints; replaced, and never changed
}

// of returns the lane of an endpoint, or nil.
func (s *lanes) of(id string) *lane {
	l, _ := s.byID.Load(id)
	if l == nil {
		return nil
	}
	return l.(*lane)
}

// all yields the lanes with the ids of their endpoints.
func (s *lanes) all() iter.Seq2[string, *lane] {
	return func(yield func(string, *lane) bool) {
		s.byID.Range(func(id, l any) bool { return yield(id.(string), l.(*lane)) })
	}
}

// tenant returns the lanes of an application. The list is not to be changed.
func (s *lanes) tenant(id string) []*lane {
	list, _ := s.byTenant.Load(id)
	if list == nil {
		return nil
	}
	return list.([]*lane)
}

// set adds a lane, in the place of the one that its endpoint had: at no time is the
// endpoint missing.
func (s *lanes) set(l *lane) {
	id, tenant := l.ep.id(), l.ep.conf.Application
	if old := s.of(id); old != nil && old.ep.conf.Application != tenant {
		s.leave(old)
	}
	s.byID.Store(id, l)
	if tenant == "" {
		return
	}
	list := slices.Clone(s.tenant(tenant))
	if i, there := search(list, id); there {
		list[i] = l
	} else {
		list = slices.Insert(list, i, l)
	}
	s.byTenant.Store(tenant, list)
}

// drop removes the lane of an endpoint that is gone. What it has claimed is sent.
func (s *lanes) drop(id string) {
	if l := s.of(id); l != nil {
		s.byID.Delete(id)
		s.leave(l)
	}
}

// leave removes a lane from those of its application.
func (s *lanes) leave(l *lane) {
	tenant := l.ep.conf.Application
	list := s.tenant(tenant)
	i, there := search(list, l.ep.id())
	switch {
	case !there:
	case len(list) == 1:
		s.byTenant.Delete(tenant)
	default:
		s.byTenant.Store(tenant, slices.Delete(slices.Clone(list), i, i+1))
	}
}

// search finds the lane of an endpoint in those of an application.
func search(list []*lane, id string) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(l *lane, id string) int { return cmp.Compare(l.ep.id(), id) })
}
