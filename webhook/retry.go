package webhook

// This file holds when a failed delivery is tried again. Its functions are pure.
