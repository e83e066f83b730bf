// Package scanstate moves the cursors that package chain/scan declares, and says which of their blocks are final.
package scanstate
