// Package logins limits how fast passwords can be guessed. RESP and HTTP ask the same Limiter
// before they check a password, a token or anything else that can be guessed.
//
// # Model
//
//	Try(source, check)
//	  -> the source has failures left?     its own bucket: login-failures per minute
//	  -> it has failed before?             the bucket of all: login-failures-total per minute
//	  -> check                             outside of the lock: hashing takes time
//	  -> the result                        a failure takes a token, a success takes none
//
// A source is an IPv4 address, the /64 network of an IPv6 address, the loopback network, or the
// Unix socket. Each has a token bucket (limit.Bucket) that holds as many tokens as failures are
// allowed per minute, and so has the sum of all sources. Time is the monotonic clock.
//
// A login is refused, without a check, while its bucket is empty. So a right password says no more
// than a wrong one, and the client has to wait. That is the price of sharing an address with
// someone who guesses: Settings.SetExempt is for proxies.
//
// The bucket of all is for guesses from many addresses. It never delays a client whose address has
// not failed within Memory, nor one whose address has logged in before.
//
// # Guesses at the same time
//
// A check counts against its bucket while it runs, as if it had failed, so that a thousand
// connections cannot all use the last token. A login that finds only such tokens waits for a check
// to end: right passwords that arrive at the same time never refuse each other.
//
// # Bounds
//
// There are two lists of at most login-failures-addresses sources each. One has the sources that
// have failed and never logged in, until Memory after their last failure. If it is full, the wider
// network of a new source is its source, with the failures of one. No guesser can push another
// one out. With as many networks again in it, new ones need a token of all from their first login
// on, but not clients of this machine. The other list has the sources that have logged in with a
// password, the one that has not done so for longest going first.
//
// # Left out on purpose
//
// A success does not refill a bucket: who has one password could log in with it between guesses of
// another. Users without a password prove nothing, and change nothing. Nodes of a cluster count
// separately.
package logins
