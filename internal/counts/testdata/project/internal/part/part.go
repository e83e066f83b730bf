// Package part is internal.
package part

// Part has a method that embedding promotes.
type Part struct{ Size int }

// Grow changes the part.
func (p *Part) Grow(other Part) {}
