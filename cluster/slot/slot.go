// Package slot maps keys to the 16,384 slots of Redis Cluster: CRC16 of the key, or of the part of
// it between the first { and the next }, if that part is not empty.
package slot

import (
	"bytes"
	"errors"
)

// Count is how many slots there are; they are numbered from 0.
const Count = 16384

// Of returns the slot of a key.
func Of(key []byte) int {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if size := bytes.IndexByte(key[open+1:], '}'); size > 0 {
			key = key[open+1 : open+1+size]
		}
	}
	return int(crc16(key) % Count)
}

// table is that of CRC-16/XMODEM: polynomial 0x1021, most significant bit first.
var table = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
}()

func crc16(b []byte) (crc uint16) {
	for _, c := range b {
		crc = crc<<8 ^ table[byte(crc>>8)^c]
	}
	return crc
}

// Range is the slots from First to Last, both included.
type Range struct{ First, Last int }

// RangeOf returns the slots of a group, if groups share all slots evenly.
func RangeOf(group, groups int) Range {
	return Range{(group*Count + groups - 1) / groups, ((group+1)*Count+groups-1)/groups - 1}
}

// Group returns the group of a slot, if groups share all slots evenly.
func Group(slot, groups int) int { return slot * groups / Count }

// ErrNoLeader reports that no node leads a group of slots, as far as this one knows.
var ErrNoLeader = errors.New("no node leads the group")

// MovedError reports that another node leads a group of slots.
type MovedError struct {
	Node string // its name
	// host:port for clients without TLS and with; empty if the error is not for clients
	Address, TLSAddress string
}

// AddressFor returns the address for a client with or without TLS.
func (e *MovedError) AddressFor(tls bool) string {
	if tls {
		return e.TLSAddress
	}
	return e.Address
}

func (e *MovedError) Error() string { return "node " + e.Node + " leads the group" }
