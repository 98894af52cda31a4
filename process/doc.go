// Package process fits the process to the machine that it runs on: processors, the heap, and the
// limits that the operating system sets. What it changes is global to the process, so only the
// command uses it.
//
//	processors.go how many processors run Go code
//	heap.go       when the garbage collector runs, and how much memory the runtime takes from the system
//	limits.go     whether the limits on address space and open files (ulimit -v, -n) are high enough
//
// The environment takes precedence: GOMAXPROCS, GOGC and GOMEMLIMIT are left as they were set.
package process
