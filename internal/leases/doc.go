// Package leases takes, checks and gives up the leases whose rows package store/lease declares. A store
// author needs only the rows; the working processes use these functions.
package leases
