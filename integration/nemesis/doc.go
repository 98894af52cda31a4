// Command nemesis runs a cluster of rlserver processes, does to them what machines and networks do
// to servers, and checks that clients never see anything that a single limiter would not have done.
//
//	go run ./integration/nemesis -time 10m          also: make nemesis
//	go run ./integration/nemesis -broken -time 1m   also: make nemesis-broken
//
// # The cluster
//
// Each node is a process in a network namespace of its own, with a small file system in memory of
// its own. The namespaces are joined by package network, so that packets are dropped, delayed and
// lost for each direction. The calls of the processes that wait for the disk are delayed by seccomp
// filters.
//
//	main.go     flags, the namespace of the program itself, the course of a run, what is printed
//	node.go     processes, their folders and clocks
//	faults.go   what is done to processes, clocks and the network
//	disks.go    what is done to disks and directories, and to clocks at a total restart
//	operators.go what operators do: upgrades, replaced nodes, backups, forced recovery
//	tail.go     a torn write at the end of a log
//	clients.go  clients of the cluster, and plain ones of --proxy-port
//	broken.go   servers that are broken on purpose
//	burst.go    calls on all keys at once, as for a node that is stopped or cut off
//	history.go  the calls on each key, and their check
//
// # The check
//
// Calls are made once: no client tries again by itself. An error that says that nothing was done is
// no call. After any other error and after a timeout the outcome is unknown: the call may have been
// executed then, later or not at all. The history of each key must be linearizable (porcupine): a
// key has few calls, so that this takes milliseconds, and is replaced by another one then. The
// windows are an hour long, and the clocks of the nodes are off by many hours: nothing lapses
// unless a clock is believed.
//
// That includes conservation, which is counted as well: the permits that were granted, and those
// that were taken by calls whose outcome their client does not know.
//
// What else must hold is a finding too: other nodes serve all groups while a disk hangs, and a node
// that is started becomes ready. The summary has the longest time that a group has not answered
// during each fault, and notes in parentheses.
//
// With -broken, servers are built that break the promise on purpose (package cluster/broken). Each
// runs under the faults that show it until there is a finding, and must have one. The server as it
// is runs under the same faults first and must have none: otherwise a finding would say nothing.
package main
