package dispatch

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"github.com/forbear-go/forbear/webhook"
)

// lanes holds the lane of each endpoint, by its id and by its application. A change
// costs the same however many there are. One goroutine changes it at a time,
// [Dispatcher.Load]'s; any may read.
type lanes struct {
	byID     sync.Map // *lane
	byTenant sync.Map // []*lane, by the ids of their endpoints; replaced, and never changed
	// unserved has the endpoints that are not served as they are stored: mostly none.
	unserved sync.Map // unserved, by id
}

// unserved is why an endpoint is not served as it is stored: it has no lane, or an
// older one.
type unserved struct {
	application string
	err         error // an [webhook.ErrUnreadable]
}

// served notes whether an endpoint is served as it is stored. It reports false when that
// it is not is new.
func (s *lanes) served(e *webhook.Endpoint, err error) bool {
	if err == nil {
		s.unserved.Delete(e.ID)
		return true
	}
	_, known := s.unserved.Swap(e.ID, unserved{e.Application, err})
	return known
}

// unservable returns why an endpoint has no lane; nil where it has one or does not exist.
func (s *lanes) unservable(id string) error {
	if s.of(id) != nil {
		return nil
	}
	return s.outdated(id)
}

// outdated returns why an endpoint is not served as it is stored; nil where it is.
func (s *lanes) outdated(id string) error {
	u, _ := s.unserved.Load(id)
	if u == nil {
		return nil
	}
	return u.(unserved).err
}

// unsure returns why it is not known which endpoints of an application want a message;
// nil where it is.
func (s *lanes) unsure(application string) (err error) {
	s.unserved.Range(func(_, u any) bool {
		if u.(unserved).application == application {
			err = u.(unserved).err
		}
		return err == nil
	})
	return err
}

// forget drops what is noted of endpoints that are not known.
func (s *lanes) forget(known map[string]bool) {
	s.unserved.Range(func(id, _ any) bool {
		if !known[id.(string)] {
			s.unserved.Delete(id)
		}
		return true
	})
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
	s.unserved.Delete(id)
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
