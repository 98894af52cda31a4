// Package waitqueue holds the calls that wait on the server: a limiter's call with WAIT until the
// limiter admits it, and a blocking pop until its key has a member.
//
// # Model
//
// Queues has one queue for each key that a call waits for. A waiter is a copy of such a call, with
// an entry in the queue of each of its keys, in order of arrival. Limiters and pops are in separate
// lists of a queue, as a pop does not take what a limiter waits for.
//
// A waiter does not check whether it is its turn. Two events process a queue, both under the lock
// of its key:
//
//   - The key changes: the engine calls Watch.Then, here queue.keyChanged, at the end of the call
//     that changed it.
//   - The only timer of the queue fires: queue.timerFired.
//
// Either one runs the handlers of the waiters whose turn it is, stores the replies in the waiters,
// and wakes their connections, which send them. So the order of the replies does not depend on how
// goroutines are scheduled, a waiter that cannot be admitted is not woken, and nothing runs between
// changes of keys and timers.
//
// A pop may have as many keys as a call has words. It joins and leaves their queues in steps, so
// that other calls wait for one step at most. It may be popped for as soon as it is in one queue,
// and looks at each key once more when it joins its queue. Before it leaves, it is marked as ended,
// so that nothing is popped for a client that has gone.
//
// A limiter's call on several keys runs only when it is first in all its queues, under the locks of
// all its keys. Only the timer takes those locks; a queue that meets such a call elsewhere sets the
// timer to now. The same goes for a pop with a target (BLMOVE) if another call has the target's
// lock; usually none has, and the element is moved in the call that has inserted it.
//
// # In another client's Tx.End
//
// Watch.Then runs inside Tx.End of the client that changed the key, on that client's goroutine,
// before its locks are released. So the handler of a waiter runs there too, with that client's Tx,
// and its changes belong to that client's journal record. Three consequences:
//
//   - A handler that panics there must not end the other client's call: waiter.run recovers and
//     replies with an error.
//   - A reply may be sent only when the journal has that record: Tx.Afterwards gives its position
//     to the waiter.
//   - The handler writes to the waiter's own Call, never to the Call of the client that owns the
//     Tx.
//
// # Locks
//
// A lock is taken only in this order:
//
//  1. the locks of keys, which a Tx takes all at once;
//  2. Queues.mu or Waiter.mu, never both.
//
// Queues.mu guards the map of queues. What is in a queue, and the entries of a waiter, are under
// the lock of the key. The state of a waiter and its reply are under Waiter.mu, which CLIENT
// UNBLOCK takes without the locks of keys. A handler that runs for a waiter runs under Waiter.mu
// and the locks of its keys, so it must take no other lock.
//
// # Clocks
//
// The time at which a limiter admits is server time, which may jump: Queues.RetryAll then retries
// each queue. A timeout is measured by the monotonic clock. See package clock.
//
// # Left out
//
// There is no separate limit on waiters: each is a connection, and counts towards the memory of its
// client with Size. Waiters are not kept across a restart, as connections are not.
package waitqueue
