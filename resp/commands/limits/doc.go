// Package limits has the handlers of the rate limiters: the RL.* commands, and the limiters of
// other servers for their clients.
//
// The algorithms with a name take their arguments from the table of package rule, so that a single
// handler serves them all: it takes key, fields and options into an engine.Limit, has the engine
// decide, and replies with the five integers of a limit.Decision. A handler runs under the locks of
// its keys, and its reply is sent when the journal has the decision.
//
//   - Every decision goes through Call.Admit where the command has WAIT, which makes it wait, and
//     Call.Decided, which counts it.
//   - A call that names several keys is admitted by all of them, or takes nothing from any.
//   - The limits of a call are kept in scratch space of the Call, so that a decision allocates
//     nothing.
//   - RL.TOP and what changes policies take their own locks, and cannot run in a transaction.
//
// Left out: the commands of other servers have no WAIT and no ID, as theirs have none.
package limits
