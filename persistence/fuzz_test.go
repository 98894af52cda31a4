package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
)

// damager damages files in steps of six bytes each: the kind of damage (1), the file (1), the
// position (2) and an argument (2).
type damager struct {
	names    []string
	files    map[string][]byte
	resealed bool // a changed record got a valid checksum
}

const damageStep = 6

var damages = []func(v *damager, name string, at, with int){
	func(v *damager, name string, at, with int) { // flip
		if b := v.files[name]; len(b) > 0 {
			b[at%len(b)] ^= byte(with)
		}
	},
	func(v *damager, name string, at, with int) { // cut
		b := v.files[name]
		v.files[name] = b[:at%(len(b)+1)]
	},
	func(v *damager, name string, at, with int) { // insert
		b := v.files[name]
		v.files[name] = slices.Insert(b, at%(len(b)+1), bytes.Repeat([]byte{byte(with)}, with>>8)...)
	},
	func(v *damager, name string, at, with int) { // lose
		b := v.files[name]
		begin := at % (len(b) + 1)
		v.files[name] = slices.Delete(b, begin, min(len(b), begin+with))
	},
	func(v *damager, name string, at, with int) { // swap
		other := v.names[with%len(v.names)]
		v.files[name], v.files[other] = v.files[other], v.files[name]
	},
	func(v *damager, name string, at, with int) { // remove
		v.files[name] = nil
	},
	func(v *damager, name string, at, with int) { // change a valid header
		if b := v.files[name]; len(b) >= fileHeaderSize {
			b[at%40] ^= byte(with)
			binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(b[:40], castagnoli))
		}
	},
	func(v *damager, name string, at, with int) { // change a valid record
		v.inRecords(name, func(records []byte) []byte {
			v.resealed = true
			for begin := 0; begin < len(records); {
				_, size, err := readRecord(nil, records[begin:])
				if err != nil {
					break
				}
				if at < begin+size {
					payload := records[begin+headerSize : begin+size]
					payload[at%len(payload)] ^= byte(with)
					binary.LittleEndian.PutUint32(records[begin+8:], crc32.Checksum(payload, castagnoli))
					break
				}
				begin += size
			}
			return records
		})
	},
	func(v *damager, name string, at, with int) { // change the decompressed content of a snapshot
		v.inRecords(name, func(records []byte) []byte {
			if len(records) > 0 {
				records[at%len(records)] ^= byte(with)
			}
			return records
		})
	},
	func(v *damager, name string, at, with int) { // end it early, or repeat something
		v.inRecords(name, func(records []byte) []byte {
			at %= len(records) + 1
			return append(slices.Clone(records[:at]), records[max(0, at-with):]...)
		})
	},
}

// inRecords changes the records of a file, compressed or not.
func (v *damager) inRecords(name string, change func(records []byte) []byte) {
	b := v.files[name]
	if len(b) < fileHeaderSize {
		return
	}
	if kind, _, _ := parseName(name); kind == logFile {
		v.files[name] = append(b[:fileHeaderSize:fileHeaderSize], change(slices.Clone(b[fileHeaderSize:]))...)
		return
	}
	z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<20))
	defer z.Close()
	records, err := z.DecodeAll(b[fileHeaderSize:], nil)
	if err != nil {
		return
	}
	packer, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	v.files[name] = packer.EncodeAll(change(records), b[:fileHeaderSize:fileHeaderSize])
}

func (v *damager) do(steps []byte) {
	for ; len(steps) >= damageStep; steps = steps[damageStep:] {
		name := v.names[int(steps[1])%len(v.names)]
		damages[int(steps[0])%len(damages)](v, name, int(binary.LittleEndian.Uint16(steps[2:])),
			int(binary.LittleEndian.Uint16(steps[4:])))
	}
}

// allocated returns how many bytes were allocated on the heap since the start of the process.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// enough is how many bytes may be allocated to read a directory of a few kilobytes: the windows and
// buffers of each file.
const enough = 256 << 20

// A start on a damaged directory succeeds or returns an error, and a start after a repair succeeds,
// unless a file has a newer format version.
func FuzzDirectory(f *testing.F) {
	whole := newDataset(f)
	names := append(whole.ofKind(snapshotFile), whole.ofKind(logFile)...)
	for kind := range damages {
		for file := range names {
			f.Add([]byte{byte(kind), byte(file), 20, 1, 255, 0})
		}
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		v := &damager{names: names, files: map[string][]byte{}}
		for _, name := range names {
			v.files[name] = slices.Clone(whole.files[name])
		}
		v.do(steps[:min(len(steps), 4*damageStep)])
		for name, content := range v.files {
			if content == nil {
				delete(v.files, name)
			}
		}
		dir := (&dataset{files: v.files}).put(t)
		before := allocated()
		_, _, err := loaded(t, dir, 3)
		if !v.resealed {
			require.Less(t, allocated()-before, uint64(enough))
		}
		Dump(dir, io.Discard, true, NoProgress{})
		newer, few := (*newerError)(nil), (*databaseError)(nil)
		repaired := Repair(dir, io.Discard, NoProgress{})
		switch {
		case errors.As(repaired, &newer):
			return
		case err == nil:
			require.NoError(t, repaired)
		}
		require.NoError(t, repaired, "after %v", err)
		if _, _, err = loaded(t, dir, 3); !errors.As(err, &few) {
			require.NoError(t, err)
		}
		require.NoError(t, Check(dir, io.Discard, NoProgress{}))
	})
}

// A few bytes can decompress to any size: a record longer than the maximum is refused, and data
// that does not begin with a record is not read further.
func TestSnapshotBombIsRefused(t *testing.T) {
	whole := newDataset(t)
	name := whole.ofKind(snapshotFile)[0]
	for what, head := range map[string][]byte{
		"zeros":                   nil,
		"a record without an end": {255, 255, 255, 255, 255, 255, 255, 127, 1, 2, 3, 4, byte(recordCall), 0},
		"one of a terabyte":       {0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4, byte(recordCall), 0},
	} {
		t.Run(what, func(t *testing.T) {
			zeros := packed(t, nil, make([]byte, 4<<20))
			bomb := append(packed(t, whole.files[name], head), bytes.Repeat(zeros, 100)...)
			require.Less(t, len(bomb), 1<<20)
			dir := whole.with(name, bomb).put(t)
			before := allocated()
			_, _, err := loaded(t, dir, 3)
			require.ErrorContains(t, err, name+", offset 0: ")
			require.Less(t, allocated()-before, uint64(enough))
		})
	}
	t.Run("a window that is too large", func(t *testing.T) {
		// 2 GB
		head := append(slices.Clone(whole.files[name][:fileHeaderSize]), 0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8)
		dir := whole.with(name, append(head, make([]byte, 100)...)).put(t)
		before := allocated()
		_, _, err := loaded(t, dir, 3)
		require.ErrorContains(t, err, name+", offset 0: ")
		require.Less(t, allocated()-before, uint64(enough))
	})
}

// A length is trusted only as far as bytes have arrived.
func TestLengthsAreNotTrusted(t *testing.T) {
	for _, length := range []uint64{1 << 30, 1 << 40, 1<<63 - 1, 1<<64 - 1} {
		b := binary.LittleEndian.AppendUint64(nil, length)
		b = append(b, make([]byte, 100)...)
		before := allocated()
		s := newScanner("", bytes.NewReader(b), 0, maxRecord[logFile])
		_, err := s.next()
		require.ErrorIs(t, err, ErrShort)
		require.Less(t, allocated()-before, uint64(8<<20))
	}
	_, _, err := readRecord(nil,
		reseal(append([]byte{byte(recordCall), 0, byte(effect.String), 0}, binary.AppendUvarint(nil, 1<<62)...)))
	require.ErrorIs(t, err, effect.ErrEnds)
}
