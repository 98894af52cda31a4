package hitlog

// Packed is a log of one chunk, in memory of its owner.
type Packed struct {
	Data      []byte // the entries
	First, At int64  // the times of the first and the last hit
	N         int    // hits
	End       uint64 // the number after the last of the last entry
	Last      int    // where the last entry begins in Data
}

// Load makes the log that of p. Changes may write to p.Data, up to its capacity.
func (l *plain) Load(p *Packed) {
	c := &l.tail
	c.first, c.n, c.data, c.head, c.last = p.First, p.N, p.Data, 0, uint16(p.Last)
	l.at, l.end = p.At, p.End
	if l.older != nil {
		l.older = nil
	}
}

// Packed sets p to the log, whose memory it shares; ok is false if there are several chunks, or no
// hits.
func (l *plain) Packed(p *Packed) (ok bool) {
	c := &l.tail
	if l.older != nil || c.n == 0 {
		return false
	}
	p.Data, p.First, p.At, p.N, p.End, p.Last = c.data[c.head:], c.first, l.at, c.n, l.end, int(c.last-c.head)
	return true
}

// Append adds the hits of a millisecond after the last one, with the numbers from lo up to but not
// including hi, as Log.Add does. ok is false, and nothing has changed, if they would not fit in the
// capacity of p.Data.
func (p *Packed) Append(at int64, lo, hi uint64) (ok bool) {
	size := len(p.Data)
	if since := at - p.At; lo == 0 && hi == 1 && since <= maxByte && size < cap(p.Data) { // most
		p.Data = p.Data[:size+1]
		p.Data[size] = byte(since << 1)
	} else {
		var buf [maxEntry]byte
		e := appendEntry(buf[:0], since, lo, hi-lo)
		if len(e) > cap(p.Data)-size {
			return false
		}
		p.Data = append(p.Data, e...)
	}
	p.Last, p.At, p.End = size, at, hi
	p.N += int(hi - lo)
	return true
}

// maxByte is how many ms after another a hit with the number 0 takes one byte at most.
const maxByte = 63
