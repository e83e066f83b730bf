package storetest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
)

// filler sets every exported field of a record by reflection, so that a field that is added later is
// covered without a change here. No two fields get the same value. Times are not in UTC, amounts
// need 256 bits, decimals all their places.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	f.n++

	if f.fillKnown(v) {
		return
	}

	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("V%04d é'\"", f.n))
	case reflect.Bool: // differs between fields of a record, and between records
		v.SetBool(uint32(f.n)*2654435761>>16&1 == 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.n) % 251)
	default:
		f.fillElements(v)
	}
}

// fillKnown sets values of types whose fields are not to be filled one by one.
func (f *filler) fillKnown(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = epoch.Add(time.Duration(f.n) * 1001 * time.Millisecond).In(time.FixedZone("elsewhere", 3*3600))
	case *chain.Amount:
		n := new(big.Int).Lsh(big.NewInt(1), 255)
		*p, _ = chain.AmountFromBig(n.Add(n, big.NewInt(int64(f.n))))
	case *decimal.Decimal:
		*p = decimal.RequireFromString(fmt.Sprintf("%d.12345678", f.n))
	case *decimal.NullDecimal:
		*p = decimal.NewNullDecimal(decimal.RequireFromString(fmt.Sprintf("%d.00000009", f.n)))
	case *json.RawMessage:
		*p = json.RawMessage(fmt.Sprintf(`{"b": %d,  "a":1.50, "b": "\u0000é<"}`, f.n))
	default:
		return false
	}

	return true
}

// fillElements fills what v is made of or points to. Slices and maps get two elements.
func (f *filler) fillElements(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))

		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
	case reflect.Interface: // Event.Payload, which is not stored
	default:
		panic(fmt.Sprintf("conformance: records have no fields of type %s", v.Type()))
	}
}

// overwriteShared changes everything that v shares with others: elements of slices and maps, and
// what pointers point to.
func overwriteShared(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			(&filler{n: 90000}).fill(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwriteShared(v.Index(i))
			(&filler{n: 90000}).fill(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				overwriteShared(v.Field(i))
			}
		}
	}
}
