// Package disk runs processes on a disk that can be made slow, or to hang: the kernel asks this
// program about their calls that wait for a disk, by a seccomp filter. Reads and writes come from
// and go to memory, as with a disk that hangs.
//
// The program starts itself for that: its main function calls Run if the first argument is
// Argument.
package disk
