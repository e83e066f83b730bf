package hdkey

// Secrets returns the private keys and chain codes that a Signer holds, for the test that looks for them
// in what it prints.
func Secrets(s *Signer) map[string][]byte {
	secrets := map[string][]byte{
		"solana key":        s.keys.solana.key[:],
		"solana chain code": s.keys.solana.chain[:],
	}
	for b, parent := range s.keys.parents {
		name := string(b.family) + "/" + string(b.role)
		if b.livemode {
			name += "/live"
		}

		private, err := parent.ECPrivKey()
		if err != nil {
			panic(err)
		}

		secrets[name+" key"] = private.Serialize()
		secrets[name+" chain code"] = parent.ChainCode()
	}

	return secrets
}
