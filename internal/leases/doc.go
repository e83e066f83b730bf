// Package leases takes, checks and gives up the leases whose rows package store/lease declares. A store
// author needs the rows alone; the processes that work use these functions.
package leases
