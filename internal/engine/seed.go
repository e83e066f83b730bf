package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// seeds remembers, by key space, whether the signer has the keys of the addresses on record.
type seeds struct {
	mu       sync.Mutex
	verified map[chain.Space]bool
	wrong    map[chain.Space]bool
}

// isWrong reports whether the signer was found to have other keys in some space.
func (s *seeds) isWrong() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.wrong) > 0
}

func (s *seeds) isVerified(space chain.Space) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.verified[space]
}

func (s *seeds) set(space chain.Space, verified, wrong bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.verified == nil {
		s.verified, s.wrong = map[chain.Space]bool{}, map[chain.Space]bool{}
	}

	s.verified[space] = verified

	if wrong {
		s.wrong[space] = true
	} else {
		delete(s.wrong, space)
	}
}

const (
	// seedRows is how many rows are searched for seedAddresses addresses whose keys the signer can have.
	seedRows      = 100
	seedAddresses = 8
	// seedWithin is the signer's time limit.
	seedWithin = 10 * time.Second
)

// checkSeeds compares addresses on record with the signer's keys, in each key space that is not verified yet.
//
// Errors: fault.Unavailable with code signer_mismatch if all of them have other keys; those of the store and
// the signer, which prove nothing.
func (e *Engine) checkSeeds(ctx context.Context) error {
	var all []error

	for _, d := range e.Networks.Drivers() {
		all = append(all, e.checkSeed(ctx, d.Network().Space()))
	}

	return errors.Join(all...)
}

// refuseWrongSeed returns the error of checkSeeds if it proves that the signer is another. If the comparison
// fails, the worker of checkSeeds repeats it, and so does each derivation of an address.
func (e *Engine) refuseWrongSeed(ctx context.Context) error {
	err := e.checkSeeds(ctx)
	if e.seeds.isWrong() {
		return err
	}

	if err != nil && ctx.Err() == nil {
		e.config.Log.WarnContext(
			ctx,
			"the signer's keys were not compared with the addresses on record",
			"error",
			err,
		)
	}

	return nil
}

// checkSeed is checkSeeds for one key space. One address of the signer's keys is enough: others may come from
// a seed that was once configured by mistake.
func (e *Engine) checkSeed(ctx context.Context, space chain.Space) error {
	if e.seeds.isVerified(space) {
		return nil
	}

	ctx, end := context.WithTimeout(ctx, seedWithin)
	defer end()

	rows, err := e.config.Store.AddressesAfter(ctx, space, "", seedRows)
	if err != nil {
		return err
	}

	var mismatch error

	for looked, i := 0, 0; i < len(rows) && looked < seedAddresses; i++ {
		derived, ok, err := e.derive(ctx, rows[i])
		if err != nil {
			return err
		}

		if !ok {
			continue
		}

		if looked++; derived == rows[i].Address {
			e.seeds.set(space, true, false)
			return nil
		}

		if mismatch == nil {
			mismatch = fault.New(
				fault.Unavailable,
				"signer_mismatch",
				"payments.Config.Signer is not the one that made the addresses of %s: for key %s it derives %s, and "+
					"the records have %s; start with the seed that made them",
				space,
				rows[i].Key,
				derived,
				rows[i].Address,
			)
		}
	}

	e.seeds.set(space, mismatch == nil, mismatch != nil)

	return mismatch
}

// derive returns the address that the signer's key gives for a row; ok is false if the signer need not have
// the key.
func (e *Engine) derive(
	ctx context.Context,
	row invoice.Address,
) (derived chain.Address, ok bool, err error) {
	if row.Kind == invoice.ForWallet {
		if _, watchOnly := e.config.WatchOnly[row.Network][row.Key.Index]; watchOnly {
			return "", false, nil
		}
	}

	driver, err := e.Networks.Driver(row.Network)
	if err != nil {
		return "", false, nil // it is no longer served
	}

	deriver, ok := driver.(chain.Deriver)
	if !ok {
		return "", false, nil
	}

	public, err := e.config.Signer.PublicKey(ctx, row.Key)
	if errors.Is(err, fault.Forbidden) || errors.Is(err, fault.Unsupported) {
		return "", false, nil
	}

	if err != nil {
		return "", false, err
	}

	derived, err = deriver.DeriveAddress(public)

	return derived, err == nil, err
}

// verifiedKeys are the signer's public keys, after a comparison with the addresses on record. So no address
// is shown whose key may be missing after the next start.
type verifiedKeys struct{ engine *Engine }

// PublicKey returns a public key of the signer.
//
// Errors: those of checkSeed, and the signer's.
func (k verifiedKeys) PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error) {
	if err := k.engine.checkSeed(ctx, chain.Space{Family: key.Family, Livemode: key.Livemode}); err != nil {
		return chain.PublicKey{}, err
	}

	return k.engine.config.Signer.PublicKey(ctx, key)
}
