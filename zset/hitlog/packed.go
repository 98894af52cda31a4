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
