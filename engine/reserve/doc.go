// Package reserve has the reservations of a key: how much of a limit calls have taken that are not
// over, and so have not said how much they use.
//
// A reservation is a call, an amount and the time until which it is held. A Book has those of one
// key. At each moment the open ones, whose time is not over, count in full against the limit: they
// do not refill, and do not leave a window. So a limiter with a book decides as if its limit were
// smaller by what is held:
//
//	used(now) + held(now) + cost <= limit
//
// # Nothing runs when a reservation lapses
//
// Whoever looks later sees that its time is over. What is held falls in steps, at times that the
// book knows, and what is used falls as the algorithm says. As long as nothing else happens both
// only fall, so the moment at which a denied call would be admitted is found by a binary search
// over the lapses, see Wait.
//
// # Twice is not once
//
// A call that is settled stays in the book with the amount 0, and one that has lapsed stays as it
// is, for as long as the caller wants to recognize it. The caller forgets the first ones, which are
// those whose time was over first.
//
//	                    now
//	settled  lapsed      |    open
//	--o--------o-----o---|------o-----o-------->  until
//
// # In memory
//
// The reservations are nodes of a binary search tree in the order of their times, and of the calls
// for equal times, so that the order is the same wherever the same changes were made. Each node has
// the number of nodes and the sum of the amounts below it. It is a treap (Seidel and Aragon, 1996)
// whose priorities are the hashes of the calls, under a seed that clients do not know, so its depth
// is logarithmic whatever they do. The nodes are in pages of 64, without gaps: the last one takes
// the place of one that is removed. The text of the calls is in the pages too, and an index finds
// the nodes by call. None of them has pointers, so the garbage collector does not look at them.
//
// A clone shares the pages and the index; who changes one first copies it. So the clone for a
// snapshot or COPY takes a few µs for thousands of reservations.
package reserve
