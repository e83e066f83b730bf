// Package chaindata holds functions over the vocabulary of package chain that drivers of this module and
// the engine share, and that neither a host nor the author of a driver needs.
package chaindata
