// Package limits has the handlers of the rate limiters: the RL.* commands, and the limiters of
// other servers for their clients.
//
// The arguments of each algorithm are declared in the table of package rule, so that a single
// handler serves them all: it parses key, fields and options into an engine.Limit, lets the engine
// decide, and replies with the five integers of a limit.Decision. A handler runs under the locks of
// its keys, and its reply is sent when the journal has the decision.
//
//   - Every decision of a command with WAIT goes through Call.Admit, which makes the call wait.
//     Every decision goes through Call.Decided, which counts it.
//   - A call that names several keys is admitted by all of them, or takes nothing from any.
//   - The limits of a call are kept in scratch space of the Call, so that a decision allocates
//     nothing.
//   - RL.TOP and the commands that change policies take locks of their own, and cannot run in a
//     transaction.
//
// Left out: the commands of other servers have no WAIT and no ID, as on those servers.
package limits
