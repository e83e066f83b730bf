//go:build unix

package processes_test

const childVariable = "PAYMENTS_CHILD"

func child() int { return 1 }
