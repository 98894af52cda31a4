// Package bitmap reads and combines the bits of strings, for GETBIT, BITCOUNT, BITPOS, BITOP and
// BITFIELD.
//
// Bit 0 of a string is the highest bit of its first byte. Bits behind its end are 0, so a missing
// key is a bitmap of zeros. A Field is an integer of up to 64 bits at any offset, highest bit
// first; a Change sets it or adds to it, with a rule for results that do not fit.
//
// The package has no keys and changes no string of the keyspace: package engine does, with the
// results of these functions.
package bitmap
