package persistence

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// formatVersion is the version of the files that are written. Older versions are read too. It grows
// when an older server could not read what is written.
const formatVersion = 9

// fileKind is what a file holds. The numbers are file format: never renumber.
type fileKind uint32

const (
	logFile      fileKind = 1 // a segment of the log: records in the order of their calls
	snapshotFile fileKind = 2 // the whole keyspace: compressed records; the last is a recordEnd
)

var extensions = map[fileKind]string{logFile: ".log", snapshotFile: ".snapshot"}

// maxRecord is the largest record in each kind of file, in bytes. A record in a segment cannot be
// larger than the file, but a few bytes of a snapshot may decompress to any size. There a record is
// complete as soon as it has groupPiece bytes: its last part, of one key, has no more than a name,
// a field and its value.
var maxRecord = map[fileKind]uint64{logFile: math.MaxUint64, snapshotFile: 3*object.MaxString + 1<<20}

// temporary is the suffix of a file that is not complete yet.
const temporary = ".tmp"

// fileName returns the name of a file. sequence is the number of a segment, or of the segment that
// follows a snapshot.
func fileName(kind fileKind, sequence uint64) string {
	return fmt.Sprintf("%010d%s", sequence, extensions[kind])
}

// parseName is the inverse of fileName.
func parseName(name string) (kind fileKind, sequence uint64, ok bool) {
	for kind, extension := range extensions {
		if digits, found := strings.CutSuffix(name, extension); found {
			n, err := strconv.ParseUint(digits, 10, 63)
			return kind, n, err == nil && n > 0 && fileName(kind, n) == name
		}
	}
	return 0, 0, false
}

const magic = "RLSERVER"

// fileHeader is at the beginning of every file:
//
//	magic (8 bytes) · version (4) · kind (4) · sequence (8) · created, Unix ms (8) ·
//	salt (8) · CRC-32C of all that (4)
type fileHeader struct {
	version  uint32
	kind     fileKind
	sequence uint64
	created  int64
	salt     int64 // of a segment: added to its marks, so that no client can forge one
}

const fileHeaderSize = 8 + 4 + 4 + 8 + 8 + 8 + 4

func (h fileHeader) encode() []byte {
	b := make([]byte, 0, fileHeaderSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, h.version)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.kind))
	b = binary.LittleEndian.AppendUint64(b, h.sequence)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.created))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.salt))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// newerError reports a file that a later version of the server has written.
type newerError struct {
	name    string
	version uint32
}

func (e *newerError) Error() string {
	return fmt.Sprintf(
		"%s is of format version %d, and this server reads versions up to %d: start a newer rlserver on this directory",
		e.name, e.version, formatVersion)
}

// decodeHeader decodes the header of the named file. It checks the version first, because nothing
// else is known of a newer format.
func decodeHeader(name string, b []byte) (h fileHeader, err error) {
	if len(b) < fileHeaderSize {
		return h, ErrShort
	}
	h = fileHeader{
		version:  binary.LittleEndian.Uint32(b[8:]),
		kind:     fileKind(binary.LittleEndian.Uint32(b[12:])),
		sequence: binary.LittleEndian.Uint64(b[16:]),
		created:  int64(binary.LittleEndian.Uint64(b[24:])),
		salt:     int64(binary.LittleEndian.Uint64(b[32:])),
	}
	want, got := binary.LittleEndian.Uint32(b[40:]), crc32.Checksum(b[:40], castagnoli)
	switch {
	case string(b[:len(magic)]) != magic:
		return h, headerError{errors.New("file header: this is not a file of rlserver")}
	case h.version > formatVersion && (got == want || h.version < 1<<16):
		// newer servers may use another checksum
		return h, &newerError{name, h.version}
	case got != want:
		return h, headerError{fmt.Errorf("file header: crc %08x, want %08x", got, want)}
	}
	if kind, sequence, _ := parseName(name); kind != h.kind || sequence != h.sequence {
		return h, fmt.Errorf("file header: it is of %s", fileName(h.kind, h.sequence))
	}
	return h, nil
}

// headerError reports a header with a wrong checksum. What follows it may be undamaged.
type headerError struct{ error }

// damage is an error in a file, with its place.
type damage struct {
	name   string
	offset int64 // of the record, or 0 for the header; in a snapshot, of the uncompressed records
	err    error
}

func (d *damage) Error() string { return fmt.Sprintf("%s, offset %d: %v", d.name, d.offset, d.err) }
func (d *damage) Unwrap() error { return d.err }

// scanner reads records from a stream. It allocates memory for bytes that have arrived, never for a
// length alone.
type scanner struct {
	name    string
	src     *bufio.Reader
	most    uint64 // bytes in a record
	offset  int64  // of the next record
	buf     []byte
	effects []effect.Effect
	gather  bool // buf and effects keep the records before the last one
}

func newScanner(name string, src io.Reader, offset int64, most uint64) *scanner {
	return &scanner{name: name, src: bufio.NewReaderSize(src, 1<<18), offset: offset, most: most}
}

// next returns the next record. It is valid until the next call, and what it points to, with
// gather, as long as the buffer. The error is io.EOF at the end and a *damage for anything that is
// not a record. Any other error means that the file cannot be read.
func (s *scanner) next() (rec record, err error) {
	if !s.gather {
		s.buf, s.effects = s.buf[:0], s.effects[:0]
	}
	start, before := len(s.buf), len(s.effects)
	if err := s.read(headerSize); err != nil {
		if err == io.EOF && len(s.buf) == start {
			return rec, io.EOF
		}
		return rec, s.damaged(err)
	}
	length := binary.LittleEndian.Uint64(s.buf[start:])
	if length > s.most {
		return rec, s.damaged(fmt.Errorf("a record of %d bytes", length))
	}
	if err := s.read(length); err != nil {
		return rec, s.damaged(err)
	}
	rec, size, err := readRecord(s.effects, s.buf[start:])
	if err != nil {
		return rec, s.damaged(err)
	}
	s.effects = rec.effects
	rec.effects = rec.effects[before:]
	s.offset += int64(size)
	return rec, nil
}

func (s *scanner) damaged(err error) error {
	if unreadable := (*os.PathError)(nil); errors.As(err, &unreadable) {
		return err
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = ErrShort
	}
	return &damage{s.name, s.offset, err}
}

// read appends n bytes to buf. The error is io.EOF if there are fewer.
func (s *scanner) read(n uint64) error {
	const piece = 1 << 20
	for n > 0 {
		k := int(min(n, piece))
		s.buf = slices.Grow(s.buf, k)
		got, err := io.ReadFull(s.src, s.buf[len(s.buf):len(s.buf)+k])
		s.buf = s.buf[:len(s.buf)+got]
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if err != nil {
			return err
		}
		n -= uint64(k)
	}
	return nil
}
