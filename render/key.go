package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// Key identifies a build by everything that decides its outcome. Two clusters
// with one key want the same objects.
type Key [sha256.Size]byte

// KeyOf computes the key of a build from its resolution, the substituted
// values that it used, and what it found under the paths that it asked for.
func KeyOf(r Resolution, used []Value, inputs []Input) Key {
	h := sha256.New()
	write(h, r.Overlay, r.Namespace)
	writeCount(h, len(r.Components))
	write(h, r.Components...)
	used = slices.SortedFunc(slices.Values(used), func(a, b Value) int { return cmp.Compare(a.Name, b.Name) })
	writeCount(h, len(used))
	for _, v := range used {
		write(h, v.Name, v.Value)
	}
	inputs = slices.SortedFunc(slices.Values(inputs), func(a, b Input) int { return cmp.Compare(a.Path, b.Path) })
	for _, in := range inputs {
		write(h, in.Path, in.Hash)
	}
	return Key(h.Sum(nil))
}

// write hashes texts with their lengths, so that none can pass for two.
func write(h hash.Hash, texts ...string) {
	for _, s := range texts {
		writeCount(h, len(s))
		h.Write([]byte(s))
	}
}

func writeCount(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
