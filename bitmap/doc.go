// Package bitmap reads and combines the bits of strings: it is the arithmetic of GETBIT, BITCOUNT,
// BITPOS, BITOP and BITFIELD.
//
// Bit 0 of a string is the highest bit of its first byte. What lies behind its end is zeros, so a
// missing key is a bitmap of zeros. A Field is an integer of up to 64 bits at any offset, highest
// bit first; a Change sets it or adds to it, and says what happens if the result does not fit.
//
// Nothing here knows keys or changes a string of the keyspace: package engine does, with what these
// functions return.
package bitmap
