// Package group is one node's replica of a group of slots: an engine whose journal is a log that a
// majority of the group's replicas commits, by hashicorp/raft.
//
// # What is replicated
//
// The leader decides each call in its engine, as a server alone does, and the engine hands the
// effects to its journal (Replica.Append). Followers apply the effects: nothing is decided twice,
// and nothing on a replica depends on clocks, chance, configuration or version.
//
//	call -> locks -> decide, apply -> Append -> unlock -> Wait ............... -> reply
//	                                    |                  ^
//	                                  batch -> raft entry -> committed -> followers: Engine.Apply
//
// A batch is all that has come while earlier ones were on their way, up to 256 KB. If there is
// more, several full ones are on their way together, up to 4 MB. Wait joins the batch that is being
// made, whatever the call has done: when that is committed, so is everything before it, and this
// replica did lead when the call was decided. So denials and reads are confirmed by the same means
// as changes. If there is nothing else to propose, the batch is empty.
//
// # Why no call is admitted twice
//
//   - An entry names the term in which its calls were decided. A leader learns its term from the
//     barrier, its first entry: when that is applied, everything before it is, in the engine in
//     which it decides. An entry that is committed in another term is fenced, on all replicas:
//     another leader may have decided calls in between.
//   - An entry names its proposer's incarnation, which is that of the engine. The proposer skips
//     its own entries: its engine has them. All others apply them.
//   - If anything was on its way when leadership ended, the engine is ahead of the log, perhaps for
//     ever. The same holds if a call that began before the end appends after it. Then the replica
//     has failed: raft is closed and opened again on the same files, with an empty engine, and the
//     state is built from the last snapshot and the log. HandOver ends leadership when nothing is
//     on its way, so that nothing is rebuilt.
//   - A call waits for the leadership in which it was decided (Partition.Ask). If that has ended,
//     its outcome is unknown, even if this replica leads again.
//
// The record of a call with more than 256 KB of effects is split into several entries, which
// followers apply together: see entry.go.
//
// # Snapshots
//
// A leader's engine is ahead of the log, and so is a snapshot of it. It notes the incarnation and
// the number of the last record that it contains. Persist ends when that is committed, and fails if
// leadership ends first. Who restores it skips the records that the log repeats.
//
// # Time
//
// A group has one timeline: see timeline.go.
//
// # Files
//
// The folder of a group has the log and raft's terms and votes (log/, by raft-wal) and the last
// snapshot (snapshots/). Without Options.Sync the log is written and not synced; terms and votes
// always are.
package group
