package main

func Example() {
	main()
	// Output:
	// Book shop was told: 1 SIM came, 0.005 SIM is the platform's
	// Game shop was told: 1 SIM came, 0.015 SIM is the platform's
	// the platform's address holds 0.02 SIM
	// the key of Book shop reads the invoice of Book shop: OK
	// the key of Game shop reads the invoice of Book shop: Not Found
}
