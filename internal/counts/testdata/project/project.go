// Package project is a fixture: each figure is small enough to be counted by eye.
package project

import (
	"io"
	"log/slog"
	"time"

	"example.com/project/internal/part"
	"example.com/project/thing"
)

// Engine has four methods, of which three hand out its parts.
type Engine struct {
	Name string
	part *part.Part
}

func (e *Engine) Log() *slog.Logger                      { return nil }
func (e *Engine) Now() time.Time                         { return time.Time{} }
func (e *Engine) Deadline(id string) time.Time           { return time.Time{} }
func (e *Engine) Things() thing.Store                    { return nil }
func (e *Engine) unlisted(a, b int) (c int, d io.Reader) { return 0, nil }

// Alias shows an internal type under a public name, with its method and its field.
type Alias = part.Part

// Pair is generic.
type Pair[K comparable, V any] struct {
	Key   K
	value V
}

// Swap returns a pair.
func (p Pair[K, V]) Swap(f func(k K, rest ...V) error) *Pair[K, V] { return nil }

// Sizes.
const (
	Small Size = iota
	Large
	hidden
)

// Size is a size.
type Size int

// Limit is a constant without a type, and ErrFull a variable without one.
const Limit = 1 << 4

var ErrFull = newError("full")

func newError(text string) error { return nil }
