package dispatch

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"github.com/forbear-go/forbear/webhook"
)

// receivers holds the receiver of each endpoint, by its id and by its application. A change
// costs the same however many there are. One goroutine changes it at a time,
// [Dispatcher.Load]'s; any may read.
type receivers struct {
	byID     sync.Map // *receiver
	byTenant sync.Map // []*receiver, by their ids; replaced, and never changed
	// unserved has the endpoints that are not served as they are stored: mostly none.
	unserved sync.Map // unserved, by id
}

// unserved is why an endpoint is not served as it is stored: it has no receiver, or one with
// an earlier configuration.
type unserved struct {
	application string
	err         error // an [webhook.ErrUnreadable]
}

// served notes whether an endpoint is served as it is stored. It reports false when that
// it is not is new.
func (s *receivers) served(e *webhook.Endpoint, err error) bool {
	if err == nil {
		s.unserved.Delete(e.ID)
		return true
	}
	_, known := s.unserved.Swap(e.ID, unserved{e.Application, err})
	return known
}

// outdated returns why an endpoint is not served as it is stored; nil where it is.
func (s *receivers) outdated(id string) error {
	u, _ := s.unserved.Load(id)
	if u == nil {
		return nil
	}
	return u.(unserved).err
}

// unsure returns why it is not known which endpoints of an application want a message;
// nil where it is.
func (s *receivers) unsure(application string) (err error) {
	s.unserved.Range(func(_, u any) bool {
		if u.(unserved).application == application {
			err = u.(unserved).err
		}
		return err == nil
	})
	return err
}

// forget drops what is noted of endpoints that are not known.
func (s *receivers) forget(known map[string]bool) {
	s.unserved.Range(func(id, _ any) bool {
		if !known[id.(string)] {
			s.unserved.Delete(id)
		}
		return true
	})
}

// of returns the receiver of an endpoint, or nil.
func (s *receivers) of(id string) *receiver {
	r, _ := s.byID.Load(id)
	if r == nil {
		return nil
	}
	return r.(*receiver)
}

// all yields the receivers with the ids of their endpoints.
func (s *receivers) all() iter.Seq2[string, *receiver] {
	return func(yield func(string, *receiver) bool) {
		s.byID.Range(func(id, r any) bool { return yield(id.(string), r.(*receiver)) })
	}
}

// tenant returns the receivers of an application. The list is not to be changed.
func (s *receivers) tenant(id string) []*receiver {
	list, _ := s.byTenant.Load(id)
	if list == nil {
		return nil
	}
	return list.([]*receiver)
}

// add adds a receiver.
func (s *receivers) add(r *receiver) {
	s.byID.Store(r.id, r)
	tenant := r.endpoint().conf.Application
	if tenant == "" {
		return
	}
	list := slices.Clone(s.tenant(tenant))
	i, _ := search(list, r.id)
	s.byTenant.Store(tenant, slices.Insert(list, i, r))
}

// drop removes the receiver of an endpoint that is gone. What it has claimed is sent.
func (s *receivers) drop(id string) {
	s.unserved.Delete(id)
	r := s.of(id)
	if r == nil {
		return
	}
	s.byID.Delete(id)
	tenant := r.endpoint().conf.Application
	list := s.tenant(tenant)
	i, there := search(list, id)
	switch {
	case !there:
	case len(list) == 1:
		s.byTenant.Delete(tenant)
	default:
		s.byTenant.Store(tenant, slices.Delete(slices.Clone(list), i, i+1))
	}
}

// search finds the receiver of an endpoint in those of an application.
func search(list []*receiver, id string) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(r *receiver, id string) int { return cmp.Compare(r.id, id) })
}
