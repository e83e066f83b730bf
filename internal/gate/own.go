package gate

import (
	"context"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// checkOwn refuses deposit addresses of other accounts as signers, and outputs that do not go to addresses of the
// account.
func (g *Gate) checkOwn(
	ctx context.Context,
	request chain.SignRequest,
	signing []chain.Address,
) error {
	a, err := g.checkMasterKeys(ctx, request, request.Intent.AccountID)
	if err != nil {
		return err
	}

	for i, p := range request.Payloads {
		if p.Key.Role != chain.RoleDeposit || signing[i] == "" {
			continue
		}

		if ours, err := g.holds(ctx, request.Network, a.ID, signing[i]); err != nil {
			return err
		} else if !ours {
			return g.refuse(request, fault.New(
				fault.Forbidden, "unauthorized", "the %s takes from %s, which is no address of account %s",
				request.Intent.Kind, signing[i], a.ID,
			))
		}
	}

	own, err := g.ownAddresses(ctx, request, signing, a)
	if err != nil {
		return err
	}

	for _, o := range request.Intent.Outputs {
		if own[o.To] {
			continue
		}

		ours, err := g.holds(ctx, request.Network, a.ID, o.To)
		if err != nil {
			return err
		}

		if !ours {
			return g.refuse(request, fault.New(
				fault.Forbidden, "unauthorized", "the %s pays %s, which is no address of account %s",
				request.Intent.Kind, o.To, a.ID,
			))
		}
	}

	return nil
}

// ownAddresses returns the addresses that an account may pay beside its deposit addresses. They are those
// that sign, its master wallet, the platform's fee address and, for a delegation, the sellers of energy.
func (g *Gate) ownAddresses(
	ctx context.Context,
	request chain.SignRequest,
	signing []chain.Address,
	a account.Account,
) (map[chain.Address]bool, error) {
	master, err := g.config.MasterWallet(ctx, request.Network, a.Index)
	if err != nil {
		return nil, err
	}

	own := map[chain.Address]bool{
		g.config.FeeAddress(request.Network): true,
		master.Address:                       true,
	}

	for _, address := range signing {
		own[address] = true
	}

	if request.Intent.Kind == string(wallet.Delegate) {
		for _, seller := range g.energySellers(request.Network) {
			own[seller] = true
		}
	}

	delete(own, "")

	return own, nil
}

// energySellers returns the addresses from which a network's driver buys energy.
func (g *Gate) energySellers(network string) []chain.Address {
	driver, err := g.config.Networks.Driver(network)
	if err != nil {
		return nil
	}

	buyer, ok := driver.(chain.EnergyBuyer)
	if !ok {
		return nil
	}

	return buyer.EnergySellers()
}

// holds reports whether this service made an address for an account, and the recorded key derives it.
func (g *Gate) holds(
	ctx context.Context,
	network, accountID string,
	address chain.Address,
) (bool, error) {
	n, _ := g.config.Networks.Network(network)

	found, err := g.config.DB.MatchAddresses(ctx, n.Space(), []chain.Address{address})
	if err != nil || len(found) == 0 {
		return false, err
	}

	verified, err := g.config.VerifyAddress(found[0])
	if fault.Code(err) == "secret_key_unknown" {
		return false, err // this process does not know the key yet
	}

	row := verified.Address()
	if err != nil || row.Owner.AccountID != accountID || row.Address != address {
		return false, nil
	}

	derived, err := g.addressOf(ctx, network, row.Key)

	return derived == address, err
}
