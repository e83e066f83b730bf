package evm

import (
	"bytes"
	"testing"
)

// The roots are what go-ethereum's types.DeriveSha returns, for lengths around the points at which keys
// and branches grow. Some values are short enough for their node to lie inside its parent.
func TestListRootIsThatOfGoEthereum(t *testing.T) {
	for count, want := range map[int]string{
		0:   "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
		1:   "0xc58bab74ae69349615c73519f3847abf5841be7f740c4096fbb714cb247da338",
		2:   "0xb0f292a06c673a627c62ec4a3ae32518cb21f8f28cd66c49e546428ec5d6a08a",
		15:  "0xc45253dcb4f7beeadd5b7e0b46d660def1297fdf25d21db05b6ec649151ecc6f",
		16:  "0x4297aad0740d809daac83a8268b8296a9299249d7435e114c93a97db0c16a7f6",
		17:  "0x542ec13834754b7dc970b288a70bad20ad586328a0cee4de5004cac1f30705a0",
		127: "0xd330caddeb8266b247a5f3498830a8d502317db0ff9737e5045316d544e67155",
		128: "0xae38f9bcce10a25194926af4af76b869e42f6f7ad54825b0b4adac20242e55f4",
		129: "0x0fe0e213d2b3a7c64b47d2307309a36a006f2d217abfa8510db394fa36c02714",
		255: "0x0500a22c1c1d71676e9a4df6befc3fb68fc4b7764dd48cdd12decd029560fa55",
		256: "0xe51edea1d3c92df48b06f6f4fa46f756afb8664d7f6665ce00be6a062aa1ecc4",
		257: "0x13d0c141e0eefbe22a5e0f1c443e5b3d662d6d1c34467c0b09a95033770107df",
		700: "0xf991dae1bc82c4b64604207254dc0bd758f81b37d2fd239c191f28e40c330063",
	} {
		values := make([][]byte, count)
		for i := range values {
			values[i] = bytes.Repeat([]byte{byte(i), 0xff}, 1+i%60)
		}

		if got := listRoot(values).Hex(); got != want {
			t.Errorf("the root of %d values is %s, want %s", count, got, want)
		}
	}
}
