package eval

import "maps"

// entry is a value with its key, which is dear to make.
type entry struct {
	v   Value
	key string
}

// table maps cells or SSA values to what is known of them. Copies share their
// entries until one of them is written.
type table[K comparable] struct {
	m     *map[K]entry
	owned bool
}

func newTable[K comparable]() *table[K] {
	m := map[K]entry{}
	return &table[K]{m: &m, owned: true}
}

// share is a copy that costs nothing yet.
func (t *table[K]) share() *table[K] {
	t.owned = false
	return &table[K]{m: t.m}
}

func (t *table[K]) same(o *table[K]) bool { return t.m == o.m }

func (t *table[K]) all() map[K]entry { return *t.m }

func (t *table[K]) get(k K) (entry, bool) {
	e, ok := (*t.m)[k]
	return e, ok
}

// own makes the entries those of this copy alone.
func (t *table[K]) own() {
	if !t.owned {
		m := maps.Clone(*t.m)
		t.m, t.owned = &m, true
	}
}

func (t *table[K]) put(k K, e entry) {
	if old, ok := (*t.m)[k]; ok && old.key == e.key {
		return
	}
	t.own()
	(*t.m)[k] = e
}

func (t *table[K]) drop(k K) {
	if _, ok := (*t.m)[k]; ok {
		t.own()
		delete(*t.m, k)
	}
}
