package thing

import "example.com/project/internal/part"

// Reader reads.
type Reader interface {
	Thing(id string) (Thing, error)
	private()
}

// Store is a wider view.
type Store interface {
	Reader
	Put(Thing) error
}

// Tx is a view too.
type Tx interface{ Put(Thing) error }

// Thing embeds an internal type.
type Thing struct {
	part.Part
	ID string
}

// Narrowed casts views three times; asserting another type is no cast of a view.
func Narrowed(r Reader, x any) {
	_ = r.(Tx)
	_ = any(r).(Store)
	switch x.(type) {
	case Reader:
	case int:
	}
	_, _ = x.(*Thing)
}
