package main

// Stake for energy, and its delegation. Source: java-tron, DelegateResourceActuator, UnDelegateResourceActuator,
// EnergyProcessor.calculateGlobalEnergyLimitV2, Wallet.calcCanDelegatedEnergyMaxSize. What was used
// comes back by the control "recover" alone, and no delegation is locked.

const (
	energyResource = 1
	trxPrecision   = 1_000_000
	// The energy of all stakes and their weight, in TRX, are about those of the main network.
	totalEnergy = 180_000_000_000
	totalWeight = 18_000_000_000
)

// energyOf is the energy of a stake in sun.
func energyOf(stake int64) int64 {
	return int64(float64(stake) / trxPrecision * (float64(totalEnergy) / totalWeight))
}

// energy is what an account has a day: of its own stake, and of what others delegated to it.
func (a account) energy() int64 { return a.energyLimit + energyOf(a.staked+a.acquired) }

func (a account) energyLeft() int64 { return max(0, a.energy()-a.energyUsed) }

// delegatable is the stake that an account can delegate, in sun: not that of energy which it used, as far as that was
// more than others delegated to it. Source: FreezeV2Util.getV2EnergyUsage.
func (a account) delegatable() int64 {
	used := int64(float64(a.energyUsed) * trxPrecision * (float64(totalWeight) / totalEnergy))

	return max(0, a.staked-max(0, used-a.acquired))
}

// delegate moves energy of a stake to another account.
func (ws *workspace) delegate(t *transaction) *refusal {
	owner := ws.accounts[t.owner]
	receiver, known := ws.accounts[t.to]

	switch {
	case t.amount < trxPrecision:
		return invalid("delegateBalance must be greater than or equal to 1 TRX")
	case t.resource != energyResource:
		return invalid("delegateBalance must be less than or equal to available FreezeBandwidthV2 balance")
	case owner.delegatable() < t.amount:
		return invalid("delegateBalance must be less than or equal to available FreezeEnergyV2 balance")
	case t.to == t.owner:
		return invalid("receiverAddress must not be the same as ownerAddress")
	case !known:
		return invalid("Account[%s] not exists", hexBytes(prefixedBytes(t.to)))
	case receiver.contract:
		return invalid("Do not allow delegate resources to contract addresses")
	}

	owner.staked -= t.amount
	receiver.acquired += t.amount
	ws.accounts[t.owner], ws.accounts[t.to] = owner, receiver
	ws.delegated[delegation{t.owner, t.to}] += t.amount

	return nil
}

// undelegate moves it back. What the receiver used of it is used up for the owner.
func (ws *workspace) undelegate(t *transaction) *refusal {
	of := delegation{t.owner, t.to}
	stake, known := ws.delegated[of]

	switch {
	case t.to == t.owner:
		return invalid("receiverAddress must not be the same as ownerAddress")
	case !known:
		return invalid("delegated Resource does not exist")
	case t.amount <= 0:
		return invalid("unDelegateBalance must be more than 0 TRX")
	case t.resource != energyResource, stake < t.amount:
		return invalid(
			"insufficient delegateFrozenBalance(Energy), request=%d, unlock_balance=%d", t.amount, stake,
		)
	}

	owner, receiver := ws.accounts[t.owner], ws.accounts[t.to]
	share := float64(t.amount) / float64(receiver.staked+receiver.acquired)
	used := min(energyOf(t.amount), int64(float64(receiver.energyUsed)*share))
	receiver.energyUsed -= used
	receiver.acquired -= t.amount
	owner.energyUsed += used
	owner.staked += t.amount
	ws.accounts[t.owner], ws.accounts[t.to] = owner, receiver

	if ws.delegated[of] -= t.amount; ws.delegated[of] == 0 {
		delete(ws.delegated, of)
	}

	return nil
}

func getCanDelegatedMaxSize(_ *node, v view, body []byte) (any, error) {
	var in struct {
		Owner string `json:"owner_address"`
		Type  int    `json:"type"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}

	owner, ok := addressHex(in.Owner)
	if !ok || in.Type != energyResource {
		return object{}, nil
	}

	ws, err := v.workspace()
	if err != nil {
		return nil, err
	}

	return object{}.put("max_size", ws.accounts[owner].delegatable()), nil
}

func getDelegatedResource(_ *node, v view, body []byte) (any, error) {
	var in struct{ FromAddress, ToAddress string }
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}

	from, fromOK := addressHex(in.FromAddress)
	to, toOK := addressHex(in.ToAddress)

	if !fromOK || !toOK {
		return object{}, nil
	}

	ws, err := v.workspace()
	if err != nil {
		return nil, err
	}

	stake, known := ws.delegated[delegation{from, to}]
	if !known {
		return object{}, nil
	}

	one := object{"from": hexBytes(prefixedBytes(from)), "to": hexBytes(prefixedBytes(to))}

	return object{"delegatedResource": []any{one.put("frozen_balance_for_energy", stake)}}, nil
}
