package thing

// walled has nine lines and no blank one.
func walled() {
	_ = 1
	_ = 2
	_ = 3
	_ = 4
	_ = 5
	_ = 6
	_ = 7
	_ = 8
	_ = 9
}

// airy has ten lines, one of them blank.
func airy() {
	_ = 1
	_ = 2
	_ = 3
	_ = 4

	_ = 5
	_ = 6
	_ = 7
	_ = 8
	_ = 9
}

var (
	oneLine = point{1, 2}
	crowded = point{
		x: 1, y: 2,
	}
	clear = point{
		x: 1,
		y: 2,
	}
	list = []int{
		1, 2,
		3,
	}
	rows = []point{
		{1, 2},
		{1, 3},
	}
)

type point struct{ x, y int }
