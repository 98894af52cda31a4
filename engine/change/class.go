package change

import "strings"

// Class is a set of classes of events, and of the kinds of channels that they are published to: the
// value of notify-keyspace-events.
type Class uint16

const (
	Keyspace Class = 1 << iota // the channels __keyspace@<db>__:<key>
	Keyevent                   // the channels __keyevent@<db>__:<event>
	Generic
	String
	List
	Set
	Hash
	ZSet
	Expiry
	Eviction
	Stream
	Module // types that Redis does not have: limiters
	New
	Miss

	most = Generic | String | List | Set | Hash | ZSet | Expiry | Eviction | Stream | Module
)

// letters are those of notify-keyspace-events, in the order in which Redis shows them.
var letters = []struct {
	letter byte
	class  Class
}{
	{'A', most}, {'g', Generic}, {'$', String}, {'l', List}, {'s', Set}, {'h', Hash}, {'z', ZSet}, {'x', Expiry},
	{'e', Eviction}, {'t', Stream}, {'d', Module}, {'n', New}, {'K', Keyspace}, {'E', Keyevent}, {'m', Miss},
}

// Parse returns the classes that letters name; ok is false if one names none.
func Parse(text string) (all Class, ok bool) {
	for i := range len(text) {
		ok = false
		for _, l := range letters {
			if l.letter == text[i] {
				all, ok = all|l.class, true
			}
		}
		if !ok {
			return 0, false
		}
	}
	return all, true
}

// String returns the letters as Redis shows them: A for all that it stands for, and then no n.
func (c Class) String() string {
	var b strings.Builder
	for _, l := range letters {
		whole := c&most == most
		if c&l.class == l.class && !(whole && l.letter != 'A' && l.class&(most|New) != 0) {
			b.WriteByte(l.letter)
		}
	}
	return b.String()
}

// Publishes reports whether any event can be published: a kind of channel and a class are set.
func (c Class) Publishes() bool { return c&(Keyspace|Keyevent) != 0 && c&^(Keyspace|Keyevent) != 0 }
