package invoice

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/counter"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// DepositParams are the parameters of a new deposit address.
type DepositParams struct {
	Owner   event.Owner
	Network string
	// Name is at most 64 characters.
	Name     string
	Metadata map[string]string
	// Joined is as in CreateParams.
	Joined bool
}

// preparedDeposit is a deposit address that is ready to be stored.
type preparedDeposit struct {
	deposit DepositAddress
	space   chain.Space
	joined  bool
}

// PrepareDeposit checks the parameters and derives the address. An account that has made as many addresses as
// limits.Table.DepositAddresses is fault.State with code deposit_address_limit_exceeded. The returned Commit
// stores the deposit address.
func (s *Service) PrepareDeposit(ctx context.Context, p DepositParams) (Commit[DepositAddress], error) {
	prepared, err := s.prepareDeposit(ctx, p)
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, tx Tx) (DepositAddress, error) { return s.putDeposit(ctx, tx, prepared) }, nil
}

func (s *Service) prepareDeposit(ctx context.Context, p DepositParams) (preparedDeposit, error) {
	n, err := s.depositNetwork(p.Owner, p.Network, p.Name, p.Metadata)
	if err != nil {
		return preparedDeposit{}, err
	}

	if err := s.countDeposit(ctx, p.Owner); err != nil {
		return preparedDeposit{}, err
	}

	made, err := s.derive(ctx, n.Slug)
	if err != nil {
		return preparedDeposit{}, err
	}

	return preparedDeposit{
		deposit: s.depositAt(p.Owner, n, made.party, p.Name, p.Metadata),
		space:   n.Space(),
		joined:  p.Joined,
	}, nil
}

// depositNetwork checks the parameters and returns the network.
func (s *Service) depositNetwork(
	owner event.Owner,
	network, name string,
	metadata map[string]string,
) (chain.Network, error) {
	n, ok := s.registry.Network(network)
	if !ok || n.Livemode != owner.Livemode {
		return n, fault.Param(
			"network", "parameter_invalid",
			"network %q is not enabled; GET /v1/networks lists those that are",
			clip(network),
		)
	}

	if err := checkText("name", name, maxName); err != nil {
		return n, err
	}

	return n, checkMetadata(metadata)
}

// depositAt returns a deposit address at a key.
func (s *Service) depositAt(
	owner event.Owner,
	n chain.Network,
	at chain.Party,
	name string,
	metadata map[string]string,
) DepositAddress {
	return DepositAddress{
		ID:        s.ids.Next(),
		Owner:     owner,
		Name:      name,
		Network:   n.Slug,
		Address:   at.Address,
		Key:       at.Key,
		Status:    Active,
		Metadata:  metadata,
		CreatedAt: s.now(),
	}
}

// TokenAccounts returns the account of each token that the deposit address's network has now. It returns
// nothing on a network without token accounts, or on a network that is no longer served.
func (s *Service) TokenAccounts(d DepositAddress) ([]TokenAccount, error) {
	n, ok := s.registry.Network(d.Network)
	if !ok {
		return nil, nil
	}

	var accounts []TokenAccount

	for _, a := range n.Assets {
		account, err := s.tokenAccount(d.Address, a)
		if err != nil {
			return nil, fmt.Errorf(
				"deriving the account for %s of deposit address %s: %w", a.Symbol, d.ID, err,
			)
		}

		if account != "" {
			accounts = append(accounts, TokenAccount{Asset: a.Symbol, TokenAccount: account})
		}
	}

	return accounts, nil
}

// watched returns the row that matches transfers to the deposit address.
func (d DepositAddress) watched(space chain.Space) Address {
	return Address{
		Space:            space,
		Address:          d.Address,
		Kind:             ForDeposit,
		Owner:            d.Owner,
		DepositAddressID: d.ID,
		Network:          d.Network,
		Key:              d.Key,
		CreatedAt:        d.CreatedAt,
		NextCheck:        d.CreatedAt,
	}
}

// putDeposit stores the deposit address in tx.
func (s *Service) putDeposit(ctx context.Context, tx Tx, p preparedDeposit) (DepositAddress, error) {
	d := p.deposit
	if err := s.putAddress(ctx, tx, d.watched(p.space), p.joined); err != nil {
		return DepositAddress{}, err
	}

	return d, tx.PutDepositAddress(ctx, &d)
}

// CreateDeposit is PrepareDeposit and its commit in a transaction of its own.
func (s *Service) CreateDeposit(ctx context.Context, p DepositParams) (DepositAddress, error) {
	return commit(ctx, s, func() (Commit[DepositAddress], error) { return s.PrepareDeposit(ctx, p) })
}

// GetDeposit returns a deposit address of an owner, or fault.NotFound.
func (s *Service) GetDeposit(ctx context.Context, owner event.Owner, id string) (DepositAddress, error) {
	d, err := s.db.DepositAddress(ctx, owner, id)
	if err == nil {
		err = s.verifyDeposits(ctx, s.db, d)
	}

	return d, err
}

// ListDeposits returns a page of deposit addresses, newest first, and whether there are more.
func (s *Service) ListDeposits(ctx context.Context, f DepositFilter) ([]DepositAddress, bool, error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err := s.db.DepositAddresses(ctx, f)
	if err == nil {
		err = s.verifyDeposits(ctx, s.db, page...)
	}

	return paging.Page(page, limit, err)
}

// DepositUpdate changes the fields that are not nil. Metadata is replaced as a whole. A disabled address is
// still watched and credited; it is only not handed out any more.
type DepositUpdate struct {
	Name     *string
	Metadata *map[string]string
	Status   *DepositStatus
}

// updateDeposit changes a deposit address in tx.
func (s *Service) updateDeposit(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	u DepositUpdate,
) (DepositAddress, error) {
	d, err := tx.DepositAddress(ctx, owner, id)
	if err != nil {
		return DepositAddress{}, err
	}

	if err := s.verifyDeposits(ctx, tx, d); err != nil {
		return DepositAddress{}, err
	}

	if u.Name != nil {
		if err := checkText("name", *u.Name, maxName); err != nil {
			return DepositAddress{}, err
		}

		d.Name = *u.Name
	}

	if u.Metadata != nil {
		if err := checkMetadata(*u.Metadata); err != nil {
			return DepositAddress{}, err
		}

		d.Metadata = maps.Clone(*u.Metadata)
	}

	if u.Status != nil {
		if *u.Status != Active && *u.Status != Disabled {
			return DepositAddress{}, invalid(
				"status", "the status of a deposit address is active or disabled",
			)
		}

		d.Status = *u.Status
	}

	return d, tx.PutDepositAddress(ctx, &d)
}

// UpdateDeposit changes a deposit address.
func (s *Service) UpdateDeposit(
	ctx context.Context,
	owner event.Owner,
	id string,
	u DepositUpdate,
) (DepositAddress, error) {
	return update(ctx, s, func(ctx context.Context, tx Tx) (DepositAddress, error) {
		return s.updateDeposit(ctx, tx, owner, id, u)
	})
}

// ImportParams describe an address that was made elsewhere, such as by an earlier generation of the service.
type ImportParams struct {
	Owner    event.Owner
	Network  string
	Name     string
	Metadata map[string]string
	Address  string
	// Key signs for the address; it must be a deposit key of the network's space.
	Key chain.KeyRef
	// FromHeight is the first block of Network whose payments count; 0: from now on. Empty the address first:
	// on networks with account balances (all but Bitcoin), the balance check credits what it holds, for any
	// FromHeight.
	FromHeight uint64
	// FromHeights are the first blocks on other networks of the family and mode where the address is the
	// same, by slug. On networks that it does not name, payments count from now on.
	FromHeights map[string]uint64
}

// Import stores a deposit address that was made elsewhere. Blocks from FromHeight on are read again for it.
// Errors:
//
//   - fault.Invalid, key_mismatch: the key does not derive the address, so its money could not be moved
//   - fault.Duplicate: the address is stored already
func (s *Service) Import(ctx context.Context, p ImportParams) (DepositAddress, error) { // spec D7.4
	n, err := s.depositNetwork(p.Owner, p.Network, p.Name, p.Metadata)
	if err != nil {
		return DepositAddress{}, err
	}

	at, err := s.importedParty(ctx, n, p)
	if err != nil {
		return DepositAddress{}, err
	}

	from, err := s.importHeights(n, p)
	if err != nil {
		return DepositAddress{}, err
	}

	if err := s.numbers.skipTo(ctx, counter.DerivationIndex(n.Space()), at.Key.Index); err != nil {
		return DepositAddress{}, err
	}

	d := s.depositAt(p.Owner, n, at, p.Name, p.Metadata)

	return update(ctx, s, func(ctx context.Context, tx Tx) (DepositAddress, error) {
		out, err := s.putDeposit(ctx, tx, preparedDeposit{deposit: d, space: n.Space()})
		if err != nil {
			return out, err
		}

		for _, network := range slices.Sorted(maps.Keys(from)) {
			cursor, ok, err := tx.Cursor(ctx, network)
			if err != nil {
				return out, err
			}

			if !ok || from[network] == 0 || cursor.At.Height < from[network] {
				continue // the follower has not read it yet
			}

			if err := tx.PutRange(ctx, &scan.Range{
				ID:        s.ids.Next(),
				Network:   network,
				Addresses: []chain.Address{d.Address},
				Next:      from[network],
				To:        cursor.At.Height,
				CreatedAt: s.now(),
			}); err != nil {
				return out, err
			}
		}

		return out, nil
	})
}

// importHeights returns the first height, by network, of the blocks that are read again.
func (s *Service) importHeights(n chain.Network, p ImportParams) (map[string]uint64, error) {
	from := map[string]uint64{}

	for slug, height := range p.FromHeights {
		other, ok := s.registry.Network(slug)
		if !ok || other.Space() != n.Space() {
			return nil, fault.Param(
				"from_heights", "parameter_invalid",
				"network %q is not one on which an address of network %s is the same",
				clip(slug), n.Slug,
			)
		}

		from[slug] = height
	}

	from[n.Slug] = p.FromHeight

	return from, nil
}

// importedParty returns the key and the canonical address, once the key is known to derive it.
func (s *Service) importedParty(ctx context.Context, n chain.Network, p ImportParams) (chain.Party, error) {
	driver, err := s.registry.Driver(n.Slug)
	if err != nil {
		return chain.Party{}, err
	}

	address, err := driver.ParseAddress(p.Address)
	if err != nil {
		return chain.Party{}, fault.Wrap(
			err, fault.Invalid, "address_invalid", "%q is not an address of network %s",
			clip(p.Address), n.Slug,
		)
	}

	space := chain.Space{Family: p.Key.Family, Livemode: p.Key.Livemode}
	if space != n.Space() || p.Key.Role != chain.RoleDeposit || p.Key.Index > 1<<31-1 {
		return chain.Party{}, fault.Param(
			"key", "key_mismatch", "key %s is not a deposit key of network %s",
			p.Key, n.Slug,
		)
	}

	deriver, ok := driver.(chain.Deriver)
	if !ok {
		return chain.Party{}, fault.New(
			fault.Unsupported, "address_unsupported",
			"the driver of network %s cannot make addresses",
			n.Slug,
		)
	}

	derived, err := s.addressOf(ctx, deriver, p.Key)
	if err != nil {
		return chain.Party{}, err
	}

	if derived != address {
		return chain.Party{}, fault.Param(
			"key", "key_mismatch", "key %s belongs to address %s, not to %s",
			p.Key, derived, address,
		)
	}

	return chain.Party{Key: p.Key, Address: address}, nil
}
