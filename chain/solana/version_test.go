package solana

import (
	"encoding/json"
	"math"
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
)

// FuzzAccounts reads transactions of any version from their accounts, as nodes name them.
func FuzzAccounts(f *testing.F) {
	signature := solanago.Signature{1}.String()
	f.Add(signature, []byte(`[{"pubkey":"`+testKey.String()+`","signer":true}]`),
		[]byte(`{"fee":5,"preBalances":[9],"postBalances":[4],"preTokenBalances":[],"postTokenBalances":[]}`))
	f.Add(signature, []byte(`[{"pubkey":"x"}]`), []byte(`{"fee":5,"preBalances":[9],"postBalances":[5]}`))

	f.Add(
		signature,
		[]byte(
			`[{"pubkey":"`+testKey.String()+`","signer":true},{"pubkey":"`+testKey.String()+`","signer":true}]`,
		),
		[]byte(`{"fee":5,"preBalances":[9,9],"postBalances":[4,9]}`),
	)

	e := new(endpoint)

	f.Fuzz(func(t *testing.T, signature string, rawAccounts, rawMeta []byte) {
		var (
			encoded blockTx
			meta    *txMeta
		)
		if json.Unmarshal(rawAccounts, &encoded.Transaction.Accounts) != nil ||
			json.Unmarshal(rawMeta, &meta) != nil {
			return
		}

		encoded.Transaction.Signatures, encoded.Meta = []string{signature}, meta

		tx, err := e.executedOf(encoded)
		if err != nil {
			return
		}

		var before, after chain.Amount
		for i := range tx.keys {
			before = before.Add(chain.Units(meta.PreBalances[i]))
			after = after.Add(chain.Units(meta.PostBalances[i]))
		}

		spends := tx.spends()
		if before.Less(after) || len(spends) > 1 ||
			len(spends) == 1 && !encoded.Transaction.Accounts[0].Signer {
			t.Errorf("%d lamports are %d, signed by %+v", before, after, spends)
		}
	})
}

// Payments whose sum exceeds 64 bits do not add up to what the account holds.
func TestCloseOfAWrappedSum(t *testing.T) {
	b := txBuilder{
		order:      chain.Order{Close: true},
		sourceMint: &mint{},
		held:       tokenAccount{amount: 7},
		payments:   []payment{{gross: math.MaxUint64, account: testKey}, {gross: 8, account: testKey}},
	}

	// Without an endpoint: the history of an account that is closed would be read.
	if err := new(driver).planClose(t.Context(), nil, &b); err != nil || b.rentRecipient != nil {
		t.Errorf("the account is closed for %v, %v", b.rentRecipient, err)
	}
}
