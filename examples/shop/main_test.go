package main

func Example() {
	main()
	// Output:
	// ordered: order open, invoice open (orders: 1, invoices: 1)
	// ordered twice, refused: true
	// after the refusal: order open, invoice open (orders: 1, invoices: 1)
	// paid: order paid, invoice paid (orders: 1, invoices: 1)
}
