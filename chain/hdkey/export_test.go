package hdkey

// Secrets returns the private keys and chain codes that a Signer holds.
func Secrets(s *Signer) map[string][]byte {
	secrets := map[string][]byte{
		"solana key":        s.keys.solana.key[:],
		"solana chain code": s.keys.solana.chain[:],
	}
	for key, parent := range s.keys.parents {
		name := string(key.family) + "/" + string(key.role)
		if key.livemode {
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
