// Package network joins processes by a network whose links fail: it drops, delays and loses packets
// between them, in each direction. Each process is in a network namespace of its own, with a TUN
// device; the program moves the packets between them. It needs nothing of the kernel beyond
// namespaces and TUN, and all of it ends with the program. It needs root on Linux, or user
// namespaces and /dev/net/tun.
package network
