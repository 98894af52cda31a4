package effect

import (
	"bytes"
	"cmp"
)

// Key is a key's name with its hash, which is computed once per call, and is used to choose the
// shard and to find the key in it. The name belongs to the caller.
type Key struct {
	Name []byte
	Hash uint64
}

// Is reports whether two keys are the same.
func (k Key) Is(other Key) bool { return k.Hash == other.Hash && bytes.Equal(k.Name, other.Name) }

// Compare orders keys by their hashes, and those with the same hash by their names.
func (k Key) Compare(other Key) int {
	if k.Hash != other.Hash {
		return cmp.Compare(k.Hash, other.Hash)
	}
	return bytes.Compare(k.Name, other.Name)
}
