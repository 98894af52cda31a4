// Package process fits the process to the machine that it runs on: processors, the heap, and the
// limits that the operating system sets. What it changes is global to the process, so only the
// command uses it.
//
//	processors.go how many processors run Go code
//	heap.go       when the garbage collector runs, and how much memory the runtime takes
//	limits.go     whether ulimit -v (address space) and -n (open files) are high enough
//
// The environment takes precedence: GOMAXPROCS, GOGC and GOMEMLIMIT are left as they were set.
package process
