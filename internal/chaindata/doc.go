// Package chaindata holds functions over the types of package chain. The drivers of this module and the
// engine share them; neither a host nor the author of a driver needs them.
package chaindata
