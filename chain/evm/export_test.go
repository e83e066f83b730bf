package evm

// ListRoot is listRoot, for nodes that tests make up.
var ListRoot = listRoot
