// Package list holds lists of byte strings in packed runs.
//
// # The structure
//
// A list is a row of runs, and a run is one allocation of at most RunSize bytes with elements one
// after another. A longer element has a run of its own, of exactly its size:
//
//	runs   [ 3 elements | 190 elements | 7 elements ]      32 bytes each, with room at both ends
//	            |
//	run    [ free ·· | 3 ann 4 | 3 bob 4 | 5 carol 6 | ·· free ]
//
// The length of an element is in front of it as a varint, and the length of both is behind it, with
// the groups of seven bits in reverse order, so that a run is read in both directions. An element
// of up to 125 bytes costs 2 bytes beyond its own.
//
// A change at an end touches one run and moves nothing: a run that is filled from its front has its
// free bytes there. A change in the middle moves the bytes of one run, and the row if it adds or
// removes runs. The element of a rank is found by adding up the counts of the runs from the nearest
// end, or from the run of the latest change: a list of a million elements of 20 bytes has about
// 5,400 runs. Two neighboring runs that have at most half a run together are merged, and a run that
// is mostly free gets a smaller allocation.
//
// # Clones
//
// A clone shares the runs, and copies the row: 32 bytes for each run. A run that is shared is
// copied before the first change of its bytes. The capacities of runs depend on the changes of the
// list alone, so its weight does not depend on clones.
//
// # Left out on purpose
//
// A tree over the runs: adding up counts is fast enough for lists of hundreds of millions of bytes,
// and its cost at the ends, where lists are used, would be higher. Integers are stored as text.
package list
