// Package process adapts the process to the machine that it runs on: processors, the heap, and the
// limits of the operating system. Its changes are global to the process, so only the command uses
// it.
//
//	processors.go how many processors run Go code
//	heap.go       when the garbage collector runs, and how much memory the runtime takes
//	limits.go     whether ulimit -v (address space) and -n (open files) are high enough
//
// The environment takes precedence: GOMAXPROCS, GOGC and GOMEMLIMIT are not changed if they are
// set.
package process
