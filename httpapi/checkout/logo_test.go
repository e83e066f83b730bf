package checkout

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// logoPNG is a merchant's logo: a cup on a warm ground.
var logoPNG = func() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 88, 88))

	for y := range 88 {
		for x := range 88 {
			c := color.RGBA{0x6b, 0x3f, 0x24, 0xff}
			dx, dy := x-40, y-46
			inCup := x > 20 && x < 60 && y > 30 && y < 64 && dx*dx+dy*dy < 24*24
			hx, hy := x-60, y-44
			onHandle := hx*hx+hy*hy < 11*11 && hx*hx+hy*hy > 6*6 && x >= 58

			steam := y > 12 && y < 26 && ((x+y/4)%14 < 3) && x > 26 && x < 56
			if inCup || onHandle || steam {
				c = color.RGBA{0xff, 0xf3, 0xe3, 0xff}
			}

			m.Set(x, y, c)
		}
	}

	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}

	return b.Bytes()
}()
