package object

import "rlserver/engine/eviction"

// packed is two numbers of a limiter's state, with the access clock and the pressure in spare bits:
// a is below 1<<53, like limit.MaxCount, and b below 1<<40, like limit.MaxDuration. It saves memory
// because a server can have millions of limiters.
type packed struct {
	low  uint64 // a · 8 bits to spare · pressure
	High uint64 // b · access clock
}

func (p *packed) Accessed() uint32 { return uint32(p.High & eviction.ClockMask) }

func (p *packed) Touch(stamp uint32) {
	p.High = p.High&^eviction.ClockMask | uint64(stamp&eviction.ClockMask)
}

func (p *packed) Pressure() eviction.Pressure {
	return eviction.Pressure(p.low & eviction.PressureMask)
}

func (p *packed) SetPressure(s eviction.Pressure) { p.low = p.low&^eviction.PressureMask | uint64(s) }

// Encoding returns "packed" for types that Redis lacks.
func (*packed) Encoding(Packing) string { return "packed" }

func (p *packed) a() int64 { return int64(p.low >> (spareBits + eviction.PressureBits)) }

func (p *packed) b() int64 { return int64(p.High >> eviction.ClockBits) }

func (p *packed) spare() uint64 { return p.low >> eviction.PressureBits & (1<<spareBits - 1) }

func (p *packed) set(a, b int64, spare uint64) {
	p.low = uint64(a)<<(spareBits+eviction.PressureBits) | spare<<eviction.PressureBits | p.low&eviction.PressureMask
	p.High = uint64(b)<<eviction.ClockBits | p.High&eviction.ClockMask
}

const spareBits = 8
