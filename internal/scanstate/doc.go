// Package scanstate moves the cursors that package chain/scan declares, and determines which of their blocks
// are final.
package scanstate
