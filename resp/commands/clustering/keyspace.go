package clustering

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strconv"

	"rlserver/engine/object"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// Commands on the whole keyspace run on all groups that this node leads, one after the other.

// Joined is a call of a command on the whole keyspace, which runs on several groups.
type Joined struct {
	Words  [][]byte
	Groups []int // numbers of the groups to run on, in order
	// On runs the command on a group, with words that may differ from those of the call. Group -1
	// is the partition without keys.
	On     func(group int, words [][]byte) (reply []byte, failed bool)
	Keys   func(group int) int // number of keys of a group
	Random *rand.Rand
	Reply  *wire.Reply
}

// joins has the functions that merge the replies of these commands, by name.
var joins = map[string]func(*Joined){
	"dbsize":       addUp,
	"debug|digest": addDigests,
	"flushall":     lastReply,
	"flushdb":      lastReply,
	"keys":         joinArrays,
	"randomkey":    drawGroup,
	"scan":         scanGroups,
}

// JoinOf returns the function that runs a command on several groups and merges the replies, or nil
// if the command runs once.
func JoinOf(c *command.Command) func(*Joined) {
	if len(c.Keys) > 0 {
		return nil
	}
	return joins[c.FullName()]
}

func (j *Joined) write(reply []byte) { j.Reply.B = append(j.Reply.B, reply...) }

// Integer returns the value of a reply that is an integer; 0 for any other.
func Integer(reply []byte) int {
	if len(reply) == 0 || reply[0] != ':' {
		return 0
	}
	n, _ := grammar.ParseInt(bytes.TrimSuffix(reply[1:], []byte("\r\n")))
	return int(n)
}

// addUp adds up numbers.
func addUp(j *Joined) {
	sum := int64(0)
	for _, group := range j.Groups {
		reply, failed := j.On(group, j.Words)
		if failed {
			j.write(reply)
			return
		}
		sum += int64(Integer(reply))
	}
	j.Reply.Integer(sum)
}

// joinArrays concatenates arrays of names.
func joinArrays(j *Joined) {
	count, names := 0, []byte(nil)
	for _, group := range j.Groups {
		reply, failed := j.On(group, j.Words)
		head, rest, _ := bytes.Cut(bytes.TrimPrefix(reply, []byte("*")), []byte("\r\n"))
		n, err := strconv.Atoi(string(head))
		if failed || err != nil {
			j.write(reply)
			return
		}
		count, names = count+n, append(names, rest...)
	}
	j.Reply.Array(count)
	j.write(names)
}

// drawGroup runs the command on a random group, weighted so that all keys have the same chance.
func drawGroup(j *Joined) {
	sum, sizes := 0, make([]int, len(j.Groups))
	for i, group := range j.Groups {
		sizes[i] = j.Keys(group)
		sum += sizes[i]
	}
	on, n := -1, j.Random.IntN(max(sum, 1))
	for i, group := range j.Groups {
		if n < sizes[i] {
			on = group
			break
		}
		n -= sizes[i]
	}
	reply, _ := j.On(on, j.Words)
	j.write(reply)
}

// addDigests replies with the result that DEBUG DIGEST would have if all keys were in one database
// of one server.
func addDigests(j *Joined) {
	// the digest of a database that has keys: its number, and the sum of its keys
	var number, sum object.Digest
	number.MixNumber(0)
	sum.Combine(number)
	empty := sum
	for _, group := range j.Groups {
		reply, failed := j.On(group, j.Words)
		if failed {
			j.write(reply)
			return
		}
		var one object.Digest
		hex.Decode(one[:], bytes.TrimSuffix(reply[1:], []byte("\r\n")))
		if one != (object.Digest{}) {
			one.Combine(number)
			sum.Combine(one)
		}
	}
	if sum == empty {
		sum = object.Digest{}
	}
	j.Reply.Status(hex.EncodeToString(sum[:]))
}

// lastReply replies with one of several equal replies.
func lastReply(j *Joined) {
	reply := []byte("+OK\r\n")
	for _, group := range j.Groups {
		var failed bool
		if reply, failed = j.On(group, j.Words); failed {
			break
		}
	}
	j.write(reply)
}

// cursorGroupBits is the number of low bits of a SCAN cursor that have the number of its group.
// SCAN visits the groups in order.
const cursorGroupBits = 10

// scanGroups scans the groups one after the other. It skips groups that this node no longer leads
// when their turn comes.
func scanGroups(j *Joined) {
	cursor, err := strconv.ParseUint(string(j.Words[1]), 10, 64)
	if err != nil || len(j.Groups) == 0 {
		reply, _ := j.On(-1, j.Words)
		j.write(reply)
		return
	}
	group, within := int(cursor&(1<<cursorGroupBits-1)), cursor>>cursorGroupBits
	at := slices.IndexFunc(j.Groups, func(led int) bool { return led >= group })
	if at < 0 {
		at, within = len(j.Groups)-1, 0 // the last group has moved to another node
	} else if j.Groups[at] != group {
		within = 0
	}
	words := slices.Clone(j.Words)
	words[1] = strconv.AppendUint(nil, within, 10)
	reply, failed := j.On(j.Groups[at], words)
	if failed {
		j.write(reply)
		return
	}
	// *2 $<length> <cursor> *<n> …
	parts := bytes.SplitN(reply, []byte("\r\n"), 4)
	next, _ := strconv.ParseUint(string(parts[2]), 10, 64)
	switch {
	case next != 0:
		next = next<<cursorGroupBits | uint64(j.Groups[at])
	case at+1 < len(j.Groups):
		next = uint64(j.Groups[at+1])
	}
	j.Reply.Array(2)
	j.Reply.BulkString(strconv.FormatUint(next, 10))
	j.write(parts[3])
}
