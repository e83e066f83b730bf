package follow

// This file restarts a stopped network, and passes the blocks that no node has any more.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
)

// Resume lets a stopped network be read again after a person looked into it. It forgets which block was
// final: a fork below that block is then walked back like any other.
//
// Where no node has the block after the last one that was read, reading goes on at the first block that one has. What
// is between is returned, and stored as a range that is unread: it is read once a node has it. Where a node has it
// now nothing is passed. Errors:
//
//   - fault.State (network_not_stopped): the network is not stopped
//   - those of the driver, as no node says what it has: nothing is changed
func Resume(
	ctx context.Context,
	db scanstate.DB,
	driver chain.Driver,
	now time.Time,
) (passed *scan.Range, err error) {
	network := driver.Network().Slug

	stored, ok, err := db.Cursor(ctx, network)
	if err != nil {
		return nil, err
	}

	if !ok || stored.Stopped == "" {
		return nil, notStopped(network)
	}

	resumed := stored
	if isFollowed(stored) {
		if resumed, err = passUnheld(ctx, driver, stored); err != nil {
			return nil, fmt.Errorf(
				"looking for the next block of %s after %d: %w",
				network,
				stored.At.Height,
				err,
			)
		}
	}

	if resumed.At.Height > stored.At.Height {
		passed = scanstate.NewGap(network, stored.At.Height+1, resumed.At.Height, now)
	}

	err = db.Update(ctx, func(ctx context.Context, tx scan.Tx) error {
		current, _, err := tx.Cursor(ctx, network)
		if err != nil {
			return err
		}

		if current.Stopped == "" || current.At.Height != stored.At.Height ||
			current.At.Hash != stored.At.Hash {
			return notStopped(network) // somebody else has resumed it meanwhile
		}

		moved := resumed
		moved.Version, moved.UpdatedAt = current.Version, now
		moved.Stopped, moved.Final, moved.Safe = "", chain.Ref{}, chain.Ref{}

		if err := tx.PutCursor(ctx, &moved); err != nil || passed == nil {
			return err
		}

		row := *passed

		return tx.PutRange(ctx, &row)
	})

	return passed, err
}

func notStopped(network string) error {
	return fault.New(fault.State, "network_not_stopped", "network %s is not stopped", network)
}

// passUnheld returns the cursor below the first block that a node has, where that is not the block after the cursor, or
// is it and names another parent which no node has. Else it returns the cursor as it is.
func passUnheld(ctx context.Context, driver chain.Driver, cursor scan.Cursor) (scan.Cursor, error) {
	first, err := chaindata.Held(ctx, driver, cursor.At.Height+1)
	if chaindata.IsPruned(err) {
		first, err = oldestHeld(ctx, driver, cursor.At.Height+1)
	}

	if errors.Is(err, fault.NotFound) {
		return cursor, nil // the nodes are behind
	}

	if err != nil {
		return cursor, err
	}

	below, err := chaindata.Below(ctx, driver, first)
	if err != nil || below.Hash == cursor.At.Hash {
		return cursor, err
	}

	if below.Height > cursor.At.Height {
		return scanstate.Forward(cursor, []chain.Block{{Ref: below}}), nil
	}

	// A fork, which is walked back where a node has the block of the other branch.
	if _, err = driver.RefAt(ctx, cursor.At.Height); chaindata.IsPruned(err) {
		cursor.At, err = below, nil
	}

	return cursor, err
}

// oldestHeld returns the oldest block above a height that a node has.
func oldestHeld(ctx context.Context, driver chain.Driver, height uint64) (chain.Ref, error) {
	head, err := driver.Head(ctx)
	if err != nil {
		return chain.Ref{}, err
	}

	return chaindata.OldestHeld(ctx, driver, height+1, head.Tip.Height)
}
