package event

import (
	"encoding/json"
	"reflect"
	"slices"
)

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
)

// maxWalk bounds how deep details are walked; what is deeper cannot be encoded
// either.
const maxWalk = maxDepth

// rewriter copies a body and changes its strings on the way. The body that was
// given is not touched: its producer may still use what it points to.
type rewriter struct {
	// text returns what stands for a string; field is the Go name of the field
	// that holds it, directly or in a list.
	text func(field, s string) string
	// raw does the same for raw JSON.
	raw func(json.RawMessage) json.RawMessage
	// keep is how many elements lists and maps keep, all of them below 0.
	keep int
}

func (w *rewriter) body(b Body) Body {
	v := reflect.ValueOf(b)
	if v.Kind() != reflect.Struct {
		return b
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	w.value(out, "", 0)
	return out.Interface().(Body)
}

// value changes a settable value in place, and copies what it points to first.
func (w *rewriter) value(v reflect.Value, field string, depth int) {
	if depth > maxWalk || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(w.text(field, v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			w.value(v.Field(i), v.Type().Field(i).Name, depth+1)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		inner := reflect.New(v.Type().Elem())
		inner.Elem().Set(v.Elem())
		w.value(inner.Elem(), field, depth+1)
		v.Set(inner)
	case reflect.Interface:
		w.dynamic(v, field, depth)
	case reflect.Slice:
		w.list(v, field, depth)
	case reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i), field, depth+1)
		}
	case reflect.Map:
		w.mapping(v, field, depth)
	}
}

func (w *rewriter) dynamic(v reflect.Value, field string, depth int) {
	if v.IsNil() {
		return
	}
	if v.Elem().Type() == numberType {
		// A number that is changed is none any more.
		if old := v.Elem().String(); w.text(field, old) != old {
			v.Set(reflect.ValueOf(w.text(field, old)))
		}
		return
	}
	inner := reflect.New(v.Elem().Type()).Elem()
	inner.Set(v.Elem())
	w.value(inner, field, depth+1)
	v.Set(inner)
}

func (w *rewriter) list(v reflect.Value, field string, depth int) {
	if v.Type() == rawType {
		v.SetBytes(w.raw(v.Bytes()))
		return
	}
	if v.IsNil() {
		return
	}
	n := v.Len()
	if w.keep >= 0 {
		n = min(n, w.keep)
	}
	out := reflect.MakeSlice(v.Type(), n, n)
	reflect.Copy(out, v)
	for i := range n {
		w.value(out.Index(i), field, depth+1)
	}
	v.Set(out)
}

func (w *rewriter) mapping(v reflect.Value, field string, depth int) {
	if v.IsNil() {
		return
	}
	keys := v.MapKeys()
	if w.keep >= 0 && len(keys) > w.keep && v.Type().Key().Kind() == reflect.String {
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if a.String() < b.String() {
				return -1
			}
			return 1
		})
		keys = keys[:w.keep]
	}
	out := reflect.MakeMapWithSize(v.Type(), len(keys))
	for _, k := range keys {
		key := reflect.New(v.Type().Key()).Elem()
		key.Set(k)
		w.value(key, "key", depth+1)
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(k))
		w.value(value, field, depth+1)
		out.SetMapIndex(key, value)
	}
	v.Set(out)
}
