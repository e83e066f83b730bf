package checkout

import (
	"strconv"

	"rsc.io/qr"
)

// quietZone is the white margin in modules (ISO/IEC 18004).
const quietZone = 4

// qrCode is a QR code as one path of an inline SVG, in units of one module.
type qrCode struct {
	// Path draws the dark modules; Size is the width and height with the quiet zone.
	Path string
	Size int
}

// newQR encodes a text at error correction level M; nil when it is too long.
func newQR(text string) *qrCode {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil
	}

	path := make([]byte, 0, 4096)

	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			if !code.Black(x, y) {
				continue
			}

			run := x
			for run < code.Size && code.Black(run, y) {
				run++
			}

			// "Mx yhnv1h-nz" draws a bar of n modules.
			path = strconv.AppendInt(append(path, 'M'), int64(x+quietZone), 10)
			path = strconv.AppendInt(append(path, ' '), int64(y+quietZone), 10)
			path = strconv.AppendInt(append(path, 'h'), int64(run-x), 10)
			path = strconv.AppendInt(append(path, "v1h-"...), int64(run-x), 10)
			path = append(path, 'z')
			x = run
		}
	}

	return &qrCode{Path: string(path), Size: code.Size + 2*quietZone}
}
