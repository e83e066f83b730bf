package main

func Example() {
	main()
	// Output:
	// Tea shop received: 1 SIM came, 0.005 SIM is the platform's
	// Game shop received: 1 SIM came, 0.015 SIM is the platform's
	// the platform's address holds 0.02 SIM
	// the key of Tea shop reads the invoice of Tea shop: OK
	// the key of Game shop reads the invoice of Tea shop: Not Found
}
