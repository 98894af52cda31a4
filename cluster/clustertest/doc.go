// Package clustertest is what tests of a cluster share.
//
//	dir.go  folders in memory: the files of many groups are synced at each election
package clustertest
