package storetest

import "github.com/forbear-go/forbear/memstore"

// Memory is [memstore.Store] under the name that it had here.
type Memory = memstore.Store
