// Package gate makes the last check before a signature: what may be signed at all, whatever the database
// says.
package gate

import (
	"context"
	"sync"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/internal/payoutstate"
	"github.com/seed-8ee7f392/payments/payout"
)

// refusedUnauthorized is the reason for refusing a request that nobody made to this service.
const refusedUnauthorized = "unauthorized"

// Gate applies the rules for what may be signed at all, and then calls the host's signer. It does not trust
// the database: payouts are authenticated with Config.SecretKey; every other transaction may pay only
// addresses of ours. No payout is signed twice if both transactions could be included.
type Gate struct {
	config   Config
	signing  hostcall.Limited[string, [][]byte] // by network and keys
	approved approvedSpends
	recent   sync.Map // *recentBlocks by network
}

// New returns a Gate. It starts nothing.
func New(c Config) *Gate {
	return &Gate{
		config: c,
		signing: hostcall.Limited[string, [][]byte]{
			Name:  "Signer.Sign",
			Limit: signLimit,
			Pause: signPause,
			Log:   c.Log,
		},
	}
}

// PublicKey implements chain.Signer.
func (g *Gate) PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error) {
	return g.config.Signer.PublicKey(ctx, key)
}

// Sign implements chain.Signer.
func (g *Gate) Sign(ctx context.Context, request chain.SignRequest) ([][]byte, error) {
	signing, err := g.signingAddresses(ctx, request)
	if err != nil {
		return nil, err
	}

	if err := g.decode(&request, signing); err != nil {
		return nil, err
	}

	if request.Intent.Kind != string(wallet.Payout) {
		if err := g.checkOwn(ctx, request, signing); err != nil {
			return nil, err
		}

		return g.sign(ctx, request, signing)
	}

	payouts, err := g.checkPayouts(ctx, request)
	if err != nil {
		return nil, err
	}

	if request.Decoded == nil {
		return g.sign(ctx, request, signing)
	}

	return g.signOnce(ctx, request, signing, payouts)
}

// signOnce signs for payouts if no other signature for them can be included in addition to this one. The
// spends of the transaction are stored with the bytes.
func (g *Gate) signOnce(
	ctx context.Context,
	request chain.SignRequest,
	signing []chain.Address,
	payouts []payout.Payout,
) ([][]byte, error) {
	from := signing[0]
	now, spends := g.config.Now(), chaindata.SpendsOf(*request.Decoded, from)

	var (
		unbound []payout.Payout
		waits   error
	)

	for _, p := range payouts {
		if err := payoutstate.CheckSigning(p, spends, now); err != nil {
			return nil, g.refuse(request, err)
		}

		if p.Replaces(spends) {
			continue
		}

		if g.approved.isOlder(p) || g.approved.hasAnotherNonce(p, request.Decoded.Spends, spends) {
			return nil, g.refuse(request, fault.New(
				fault.Forbidden,
				"payout_signed_already",
				"payout %s was signed by this process: its row is older, or what is signed now replaces nothing",
				p.ID,
			))
		}

		if err := g.checkExpired(ctx, p); err != nil {
			waits = err
		}

		unbound = append(unbound, p)
	}

	if err := g.checkUnpaid(ctx, request, from, spends, unbound); err != nil {
		return nil, err
	}

	if waits != nil {
		return nil, waits
	}

	signatures, err := g.sign(ctx, request, signing)
	if err != nil {
		return nil, err
	}

	for _, p := range payouts {
		g.approved.add(p.ID, spends, now)
	}

	return signatures, nil
}

// signingAddresses returns the addresses of the keys that must sign.
func (g *Gate) signingAddresses(
	ctx context.Context,
	request chain.SignRequest,
) (all []chain.Address, err error) {
	for _, p := range request.Payloads {
		a, err := g.addressOf(ctx, request.Network, p.Key)
		if err != nil {
			return nil, err
		}

		all = append(all, a)
	}

	return all, nil
}

// addressOf derives the address of a key on a network.
func (g *Gate) addressOf(
	ctx context.Context,
	network string,
	key chain.KeyRef,
) (chain.Address, error) {
	driver, err := g.config.Networks.Driver(network)
	if err != nil {
		return "", err
	}

	deriver, ok := driver.(chain.Deriver)
	if !ok {
		return "", nil
	}

	public, err := g.PublicKey(ctx, key)
	if err != nil {
		return "", err
	}

	return deriver.DeriveAddress(public)
}

// decode compares the bytes with the intent, if the driver can decode them, and adds the decoded content for
// the signer.
func (g *Gate) decode(request *chain.SignRequest, signing []chain.Address) error {
	driver, err := g.config.Networks.Driver(request.Network)
	if err != nil {
		return err
	}

	decoder, ok := driver.(chain.Decoder)
	if !ok {
		return nil
	}

	decoded, err := decoder.Decode(request.Unsigned)
	if err == nil {
		err = chaindata.CheckDecoded(decoded, *request, signing)
	}

	if err != nil {
		return g.refuse(*request, err)
	}

	request.Decoded = &decoded

	return nil
}

// checkPayouts returns the payouts of a request. It refuses payouts that were not made through this service,
// or that differ from the transaction to be signed. A payout that waits for its approval is
// fault.Unavailable: it is tried again.
func (g *Gate) checkPayouts(
	ctx context.Context,
	request chain.SignRequest,
) (payouts []payout.Payout, err error) {
	i := request.Intent
	if len(i.ObjectIDs) != len(i.Outputs) || len(i.Outputs) == 0 {
		return nil, g.refuse(request, fault.New(fault.Forbidden, "unauthorized", "an output has no payout"))
	}

	paid, most := map[string]bool{}, chain.Amount{}

	for at, output := range i.Outputs {
		p, err := g.config.DB.PayoutByID(ctx, i.ObjectIDs[at])
		if err != nil {
			return nil, err
		}

		err = g.config.VerifyPayout(p)
		if fault.Code(err) == "secret_key_unknown" {
			return nil, err // this process does not know the key yet
		}

		if err == nil && p.Approval.Missing() {
			return nil, fault.New(
				fault.Unavailable, "approval_missing", "payout %s waits for its approval", p.ID,
			)
		}

		if err != nil || paid[p.ID] || !orders(p, request.Network, output) {
			return nil, g.refuse(request, fault.New(
				fault.Forbidden, "unauthorized", "payout %s is not what this service accepted", p.ID,
			))
		}

		if _, err := g.checkMasterKeys(ctx, request, p.Owner.AccountID); err != nil {
			return nil, err
		}

		if err := g.checkCovered(ctx, p); err != nil {
			return nil, err
		}

		paid[p.ID], most = true, most.Add(p.MaxNetworkFee)
		payouts = append(payouts, p)
	}

	if most.Less(i.MaxFee) {
		return nil, g.refuse(request, fault.New(
			fault.Forbidden, "unauthorized", "the fee of up to %s is above %s", i.MaxFee, most,
		))
	}

	return payouts, nil
}

// checkCovered cancels a refund for which nothing was signed, if the confirmed payments do not cover it any
// more. It then returns fault.Unavailable with code refund_canceled.
func (g *Gate) checkCovered(ctx context.Context, p payout.Payout) error {
	if p.RefundID == "" || p.Status != payout.Pending {
		return nil
	}

	canceled, err := g.config.CancelUncovered(ctx, p)
	if err != nil || !canceled {
		return err
	}

	return fault.New(
		fault.Unavailable, "refund_canceled",
		"refund %s was canceled: the payment that it gives back left the chain", p.RefundID,
	)
}

// checkMasterKeys refuses the master wallets of other accounts as signers, and returns the authenticated
// account. The row with the key of a payout is not authenticated; the row with the index of an account is.
func (g *Gate) checkMasterKeys(
	ctx context.Context,
	request chain.SignRequest,
	accountID string,
) (account.Account, error) {
	a, err := g.config.VerifyAccount(ctx, accountID)
	if err != nil {
		return account.Account{}, err
	}

	payout := request.Intent.Kind == string(wallet.Payout)

	for _, p := range request.Payloads {
		foreign := p.Key.Role == chain.RoleMaster && p.Key.Index != a.Index
		if foreign || payout && p.Key.Role != chain.RoleMaster {
			return account.Account{}, g.refuse(request, fault.New(
				fault.Forbidden,
				"unauthorized",
				"the %s of account %s takes from %s, which is not its wallet",
				request.Intent.Kind,
				a.ID,
				p.Key,
			))
		}
	}

	return a, nil
}

// orders reports whether a payout orders an output.
func orders(p payout.Payout, network string, o chain.Output) bool {
	return p.Network == network && p.AssetID == o.AssetID && p.Amount == o.Amount && p.Destination == o.To
}

// refuse logs why a request is not signed. It returns the refusal, which fails the request's transaction.
func (g *Gate) refuse(request chain.SignRequest, why error) error {
	g.logRefusal(request, why)

	return chain.Refuse(refusedUnauthorized)
}

func (g *Gate) logRefusal(request chain.SignRequest, why error) {
	g.config.Log.Error(
		"signature refused: the records do not authorize it",
		"network",
		request.Network,
		"kind",
		request.Intent.Kind,
		"object",
		request.Intent.ObjectID,
		"error",
		why,
	)
}
