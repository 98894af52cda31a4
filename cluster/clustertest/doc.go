// Package clustertest is what tests of a cluster share.
//
//	dir.go    folders in memory: the files of many groups are synced at each election
//	long.go   which tests make check alone runs
//	main.go   how many tests run at once
//	model.go  a limiter as porcupine checks it: one key, one window in which nothing lapses
//	text.go   the output of a process
package clustertest
