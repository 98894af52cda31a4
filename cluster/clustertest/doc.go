// Package clustertest is what tests of a cluster share.
//
//	dir.go    folders in memory: the files of many groups are synced at each election
//	model.go  a limiter as porcupine checks it: one key, one window in which nothing lapses
package clustertest
