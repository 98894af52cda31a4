// Package importer copies the keys of a running Redis into a running server: rlserver import.
//
// # How
//
//	SCAN ─► TYPE, MEMORY USAGE ─► TIME, PEXPIRETIME, DUMP ─► RESTORE … ABSTTL ─► state file
//	        how large is each?    in batches, so that a few megabytes are held at once
//
// It knows no types: what the target's RESTORE takes is copied, and the rest is counted by type and
// reason. RESTORE is one step, so that a key is copied or it is not. A value that is larger than a
// batch is copied alone.
//
// A deadline stays the same time. If the clocks of the servers differ by more than it takes to ask
// for both, deadlines are shifted by the difference, so that the remaining time stays the same.
//
// # What is promised
//
// Each key that exists during the whole import is copied: that is what SCAN promises. A key that
// changes meanwhile is copied as it was when it was read.
//
// This holds for one process of the source, as the positions of SCAN mean nothing to the next. So
// the state has the run_id of each node and the slots of each; each new connection compares it. If
// the source has restarted, the import begins again, and so it does when the slots of a cluster
// have moved. A target that has restarted may have lost keys that it had taken. So the state also
// has the run_ids of the nodes of the target, and the import begins again if there is another. A
// restarted node of a cluster is one, although the others may have kept its keys.
//
// # When it stops half-way
//
// The state is that after the last page of SCAN whose keys have all been taken or refused. The next
// run with this state goes on there, and copies the rest of a page again. Keys that the target had
// no room for are in the state too, to be tried again first; the import stops when there are many.
//
// Errors of the target that begin with ERR are about a value: it is left out. Others, as LOADING or
// a lost connection, are about the target, and end the run.
//
// # Left out on purpose
//
// Changes during the import are not followed: that needs replication. Idle times and frequencies
// are not copied. Users, functions and settings are not copied.
package importer
