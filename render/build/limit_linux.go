package build

import "syscall"

// limitData bounds the memory that this process may write to. What Go reserves
// of addresses does not count.
func limitData(bytes uint64) {
	limit := syscall.Rlimit{Cur: bytes, Max: bytes}
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &limit) // without it the memory limit of the runtime is what there is
}
