package durable

import (
	"reflect"
	"strings"
	"sync"
)

// jsonField is a field of a struct under the name that JSON has for it.
type jsonField struct {
	name  string
	kind  reflect.Type
	index []int // see [reflect.Value.FieldByIndex]
}

// fieldLists caches jsonFields by type.
var fieldLists sync.Map

// jsonFields lists the fields of a struct that JSON has, with those of embedded structs.
func jsonFields(t reflect.Type) (list []jsonField) {
	if known, ok := fieldLists.Load(t); ok {
		return known.([]jsonField)
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, inner := range jsonFields(f.Type) {
				inner.index = append([]int{f.Index[0]}, inner.index...)
				list = append(list, inner)
			}
		case f.IsExported() && name != "-":
			list = append(list, jsonField{name, f.Type, f.Index})
		}
	}
	fieldLists.Store(t, list)
	return list
}

// fieldOf returns the field of a struct or a map that has a name, to the letter.
func fieldOf(t reflect.Type, name string) (f jsonField, ok bool) {
	if t.Kind() == reflect.Map {
		return jsonField{name: name, kind: t.Elem()}, true
	}
	for _, f := range jsonFields(t) {
		if f.name == name {
			return f, true
		}
	}
	return f, false
}

// namesOf lists the names of the fields of a struct; a map has none.
func namesOf(t reflect.Type) (names []string) {
	if t.Kind() == reflect.Struct {
		for _, f := range jsonFields(t) {
			names = append(names, f.name)
		}
	}
	return names
}
