package tron

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/agree"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// balanceOfSelector begins the input of balanceOf(address), decimalsSelector that of decimals(). Source:
// TIP-20.
var (
	balanceOfSelector = [4]byte{0x70, 0xa0, 0x82, 0x31}
	decimalsSelector  = [4]byte{0x31, 0x3c, 0xe5, 0x67}
)

// Balances returns the balance of each holding after block at, in the order asked, in base units.
//
// Nodes have balances only at their newest block, where they include its pool, and at the solidified one. So
// the solidified balance is read, and changed by the blocks between that block and at. A node has one request
// for each balance and no batches, and a solidified block every 3 seconds. That block may change while they are read:
// what nothing moved meanwhile is the same at both. It errors:
//   - fault.Unavailable (block_too_old): at is more than maxBalanceDistance blocks before the solidified one,
//     and will stay so
//   - fault.Unavailable (block_too_new): it is as far after it, as the network solidifies nothing
//   - fault.Unavailable (block_unknown): at is not in the node's chain
//   - fault.Unavailable (balance_unreadable): a transaction in between may change the balance in a way that
//     is not read (staking, exchanges), until its block is solidified; or each block changes the balance, and is
//     solidified before it was read
//   - chain.UnreadableError, with all other balances: a token's contract reverts or returns no number, or no two of
//     the nodes say the same (chain.ErrNotAgreed)
func (d *driver) Balances(
	ctx context.Context,
	at chain.Ref,
	holdings []chain.Holding,
) ([]chain.Amount, error) {
	if at.IsZero() {
		return nil, fault.New(fault.Invalid, "block_invalid", "balances need a block to be read at")
	}

	wanted, err := d.parseHoldings(holdings)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}

	return agree.Balances(ctx, d.nodes, d.attempts, at.Height, holdings, d.balancesAt(at))
}

// balancesAt returns the reading of holdings at a block.
func (d *driver) balancesAt(at chain.Ref) agree.ReadBalances[*endpoint] {
	return func(
		ctx context.Context,
		node *endpoint,
		holdings []chain.Holding,
	) (out []chain.Amount, unreadable []chain.UnreadableHolding, err error) {
		wanted, err := d.parseHoldings(holdings)
		if err != nil {
			return nil, nil, err
		}

		for group := range slices.Chunk(wanted, balancesAtOnce) {
			solid, balances, failures, err := d.solidBalances(ctx, node, at, group)
			if err != nil {
				return nil, nil, err
			}

			rolled, err := d.rollBalances(ctx, node, solid, at, group, balances, failures)
			if err != nil {
				return nil, nil, err
			}

			for i, failure := range failures {
				if failure != nil {
					index := len(out) + i
					unreadable = append(unreadable, chain.UnreadableHolding{
						Holding: holdings[index],
						Index:   index,
						Err:     failure,
					})
				}
			}

			out = append(out, rolled...)
		}

		return out, unreadable, nil
	}
}

// parseHoldings returns the addresses and assets of holdings, which are of this network.
func (d *driver) parseHoldings(holdings []chain.Holding) ([]holding, error) {
	parsed := make([]holding, len(holdings))

	for i, h := range holdings {
		owner, err := parseAddress(string(h.Address))
		if err != nil {
			return nil, err
		}

		asset, ok := d.network.AssetByID(h.AssetID)
		if !ok {
			return nil, fault.New(
				fault.Invalid, "asset_not_enabled", "network %s has no asset %s", d.network.Slug,
				h.AssetID,
			)
		}

		parsed[i] = holding{owner, asset}
	}

	return parsed, nil
}

// balancesAtOnce is how many balances are read between two looks at the solidified block: what moved meanwhile is read
// again.
const balancesAtOnce = 48

// maxReadings is how often a balance is read that each block changes.
const maxReadings = 4

// holding is an asset of an address.
type holding struct {
	owner address
	asset chain.Asset
}

// solidBalances returns the balances at a solidified block, and what the contracts answered that have no balance to
// return; none where those at a block do not follow from them. Of those that moved while the solidified block changed,
// what was read before is moved on, and what was read meanwhile is read again.
func (d *driver) solidBalances(
	ctx context.Context,
	node *endpoint,
	at chain.Ref,
	wanted []holding,
) (solid chain.Ref, balances []chain.Amount, failures []error, err error) {
	r := solidReading{
		driver:   d,
		node:     node,
		wanted:   wanted,
		balances: make([]chain.Amount, len(wanted)),
		failures: make([]error, len(wanted)),
	}

	if r.at, err = node.latest(ctx, solidified); err == nil {
		err = checkDistance(r.at, at)
	}

	for i := range wanted {
		r.open = append(r.open, i)
	}

	for range maxReadings {
		if err == nil {
			err = r.read(ctx)
		}

		if err != nil {
			return chain.Ref{}, nil, nil, err
		}

		if len(r.open) == 0 {
			return r.at, r.balances, r.failures, nil
		}
	}

	return chain.Ref{}, nil, nil, fault.Wrap(
		failover.ErrNoState,
		fault.Unavailable,
		"balance_unreadable",
		"the balance of %s changes with each block, faster than it is read",
		canonical(wanted[r.open[0]].owner),
	)
}

// solidReading is the reading of balances at one node's solidified block.
type solidReading struct {
	*driver
	node     *endpoint
	wanted   []holding
	balances []chain.Amount
	failures []error
	at       chain.Ref // of the balances that are not open
	open     []int     // indexes of those that are to be read
}

// read reads the open balances, and moves on to the solidified block after that.
func (r *solidReading) read(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(cap(r.node.slots))

	for _, i := range r.open {
		g.Go(func() (err error) {
			r.balances[i], err = r.node.balanceOf(gctx, solidified, r.wanted[i])
			if r.failures[i] = nil; errors.Is(err, errNoNumber) {
				r.failures[i], err = err, nil
			}

			return err
		})
	}

	if err := g.Wait(); err != nil {
		return err
	}

	after, err := r.node.latest(ctx, solidified)
	if err != nil {
		return err
	}

	// Another backend of the node may be behind.
	low, high := r.at, after
	if after.Height < r.at.Height {
		low, high = after, r.at
	}

	blocks, err := r.blocksBetween(ctx, r.node, low, high, true)
	if err != nil {
		return err
	}

	r.close(blocks, high == after)
	r.at = high

	return nil
}

// close closes the open balances that did not move in some blocks: they may have been read before or after them. The
// others were known before the blocks, and are moved on where after is set.
func (r *solidReading) close(blocks []*scannedBlock, after bool) {
	wasOpen := r.open
	r.open = nil

	for i, holding := range r.wanted {
		isOpen := slices.Contains(wasOpen, i)
		if r.failures[i] != nil || !isOpen && !after {
			continue
		}

		in, out, err := holding.change(blocks)
		sum, ok := r.balances[i].AddOK(in)

		switch {
		case err == nil && in.IsZero() && out.IsZero():
		case err == nil && ok && !isOpen && !sum.Less(out):
			r.balances[i] = sum.Sub(out)
		default:
			r.open = append(r.open, i)
		}
	}
}

// balanceOf returns the balance of a holding at one of the node's services, in base units.
func (e *endpoint) balanceOf(ctx context.Context, s service, holding holding) (chain.Amount, error) {
	if holding.asset.Kind == chain.Native {
		account, err := e.account(ctx, s, holding.owner)
		return account.balance, err
	}

	contract, err := parseAddress(string(holding.asset.Contract))
	if err != nil {
		return chain.Amount{}, err
	}

	return e.callUint256(
		ctx, s, holding.owner, contract,
		append(balanceOfSelector[:], addressArgument(holding.owner)...),
	)
}

// accountState is the state of an account; zero for one that does not exist.
type accountState struct {
	exists   bool
	contract bool
	balance  chain.Amount // sun
	// assets are its TRC-10 tokens: base units by token id.
	assets map[string]chain.Amount
}

// account returns the state of an account at one of the node's services.
func (e *endpoint) account(ctx context.Context, s service, a address) (accountState, error) {
	var answer struct {
		Address string `json:"address"`
		Type    string `json:"type"`
		Balance int64  `json:"balance"`
		AssetV2 []struct {
			Key   string `json:"key"`
			Value int64  `json:"value"`
		} `json:"assetV2"`
	}

	found, err := e.post(ctx, s, "getaccount", addressRequest{nodeHex(a)}, &answer)
	if err != nil || !found {
		return accountState{}, err
	}

	if got, ok := hexAddress(answer.Address); !ok || got != a || answer.Balance < 0 {
		return accountState{}, e.Garbled(
			"asked for account %s, it answered another's, or a negative balance",
			canonical(a),
		)
	}

	state := accountState{
		exists:   true,
		contract: answer.Type == "Contract",
		balance:  chain.Units(uint64(answer.Balance)),
		assets:   map[string]chain.Amount{},
	}

	for _, asset := range answer.AssetV2 {
		if asset.Value > 0 {
			state.assets[asset.Key] = chain.Units(uint64(asset.Value))
		}
	}

	return state, nil
}

// addressArgument returns an address as an ABI word.
func addressArgument(a address) []byte { return append(make([]byte, 12), a[:]...) }

// checkToken compares a token's decimals with those of its contract. A difference is fault.Stopped
// (token_mismatch).
func (d *driver) checkToken(ctx context.Context, node *endpoint, contract address, asset chain.Asset) error {
	call, err := node.simulate(ctx, full, contract, contract, decimalsSelector[:])
	if err != nil {
		return err
	}

	if n, ok := call.uint256(); !ok || n != chain.Units(uint64(asset.Decimals)) {
		return fault.New(
			fault.Stopped, "token_mismatch",
			"token %s of network %s: contract %s does not answer %d decimals; correct the configuration",
			asset.Symbol, d.network.Slug, asset.Contract, asset.Decimals,
		)
	}

	return nil
}
