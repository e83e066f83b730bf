package conformance

// Capability names what a driver or its network may have or lack. DriverHarness.Absent lists those
// that are absent.
type Capability string

// The capabilities of drivers are the optional interfaces of package chain.
const (
	BlockScanner      Capability = "chain.BlockScanner"
	AddressScanner    Capability = "chain.AddressScanner"
	Mempool           Capability = "chain.Mempool"
	Finder            Capability = "chain.Finder"
	Balancer          Capability = "chain.Balancer"
	Deriver           Capability = "chain.Deriver"
	TokenAccounter    Capability = "chain.TokenAccounter"
	URIBuilder        Capability = "chain.URIBuilder"
	RequestURIBuilder Capability = "chain.RequestURIBuilder"
	FeeEstimator      Capability = "chain.FeeEstimator"
	FeeChecker        Capability = "chain.FeeChecker"
	InputPricer       Capability = "chain.InputPricer"
	Nonces            Capability = "chain.Nonces"
	Sender            Capability = "chain.Sender"
	Batcher           Capability = "chain.Batcher"
	Sweeper           Capability = "chain.Sweeper"
	// Recoverer needs a StrayPayer among the controls.
	Recoverer    Capability = "chain.Recoverer"
	Bumper       Capability = "chain.Bumper"
	Checker      Capability = "chain.Checker"
	RefConfirmer Capability = "chain.RefConfirmer"
	Rereader     Capability = "chain.Rereader"
	Decoder      Capability = "chain.Decoder"
	HeadNotifier Capability = "chain.HeadNotifier"
)

// The capabilities of the network under test: its assets, the harness' node and its controls.
const (
	// Tokens is an asset of kind chain.Token.
	Tokens Capability = "token assets"
	// UnreachableNode is DriverHarness.Unreachable.
	UnreachableNode Capability = "DriverHarness.Unreachable"
	// WrongNode is DriverHarness.Misconfigured.
	WrongNode Capability = "DriverHarness.Misconfigured"
	// Forking is a Forker among the controls.
	Forking Capability = "conformance.Forker"
	// ZeroPayments is a ZeroPayer: the network has transfers of 0.
	ZeroPayments Capability = "conformance.ZeroPayer"
	// FailedPayments is a FailingPayer: the network includes transactions that fail.
	FailedPayments Capability = "conformance.FailingPayer"
	// Freezing is a Freezer: the network has destinations that cannot be paid.
	Freezing Capability = "conformance.Freezer"
	// Pruning is a Pruner: the node can forget old blocks.
	Pruning Capability = "conformance.Pruner"
	// CoinSource is a CoinLister: the network spends outputs (UTXO).
	CoinSource Capability = "conformance.CoinLister"
	// CheapPayments is a CheapPayer: the pool takes payments below the current fee.
	CheapPayments Capability = "conformance.CheapPayer"
	// VariablePayments is a VariablePayer: the network has transactions whose effect depends on their block.
	VariablePayments Capability = "conformance.VariablePayer"
	// LyingNodes is a NodeFaker: the driver asks several nodes, one of which can be made wrong.
	LyingNodes Capability = "conformance.NodeFaker"
	// HeaderUpgrades is a HeaderUpgrader: headers can have fields that the driver does not know.
	HeaderUpgrades Capability = "conformance.HeaderUpgrader"
)

// The capabilities that show only in what transactions do. They are taken for granted unless
// DriverHarness.Absent has them.
const (
	// Replacement is that another transaction can displace one that waits in the pool.
	Replacement Capability = "replacement of transactions"
	// Expiry is an Expirer, on networks whose transactions expire.
	Expiry Capability = "conformance.Expirer"
)
