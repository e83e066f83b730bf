package main

func Example() {
	main()
	// Output:
	// after one deposit each:
	//   alice has 25000000 base units of USDX
	//   bob has 7000000 base units of USDX
	// after both webhooks came again:
	//   alice has 25000000 base units of USDX
	//   bob has 7000000 base units of USDX
}
