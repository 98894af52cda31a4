// Package clustertest is what tests of a cluster share.
//
//	run.go    how many tests run at once, and which make check alone runs; folders in memory: the
//	          files of many groups are synced at each election; the output of a process
//	model.go  a limiter as porcupine checks it: one key, one window in which nothing lapses
package clustertest
