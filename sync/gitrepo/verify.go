package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Verify says whose signature a commit or tag must have. The zero Verify takes
// every commit. The files are read at every fetch.
type Verify struct {
	Object             string // commit or tag
	AllowedSignersFile string // as ssh-keygen(1) has it
	OpenPGPKeysFile    string // armored public keys
}

func (v Verify) validate(w wanted) error {
	switch {
	case v == Verify{}:
		return nil
	case v.Object != "commit" && v.Object != "tag":
		return fmt.Errorf("opening a repository: the signature of a %q cannot be verified: commit and tag can", v.Object)
	case v.Object == "tag" && !w.isTag():
		return fmt.Errorf("opening a repository: the signature of a tag is asked for, and %s is none", w)
	case v.AllowedSignersFile == "" && v.OpenPGPKeysFile == "":
		return errors.New("opening a repository: a signature is asked for, and nobody's is trusted: name a file of allowed signers or of OpenPGP keys")
	}
	return nil
}

// check returns who signed what t leads to. The very bytes whose hash was
// checked are those whose signature is: nothing is read twice.
func (v Verify) check(o *objects, t target) (signer string, err error) {
	if v == (Verify{}) {
		return "", nil
	}
	var s signed
	what := "commit " + t.commit.String()
	if v.Object == "tag" {
		what = fmt.Sprintf("tag %q", t.ref)
		s, err = signedTag(o, t)
	} else {
		s, err = signedCommit(o, t.commit)
	}
	if err == nil {
		signer, err = v.signer(s)
	}
	if err == nil && v.Object == "tag" && t.named && s.name != t.ref {
		err = fmt.Errorf("it is signed as tag %q: who gave it another name made a version of it that nobody signed", s.name)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrSignature, what, err)
	}
	return signer, nil
}

func (v Verify) signer(s signed) (string, error) {
	switch first, _, _ := strings.Cut(s.signature, "\n"); {
	case s.signature == "":
		return "", errors.New("it is not signed")
	case s.at.IsZero():
		return "", errors.New("it does not say when it was made, which decides whose signature counts")
	case strings.HasPrefix(first, "-----BEGIN SSH SIGNATURE"):
		return v.sshSigner(s)
	case strings.HasPrefix(first, "-----BEGIN PGP"):
		return v.openPGPSigner(s)
	}
	return "", errors.New("its signature is neither of SSH nor of OpenPGP")
}

// signed is a commit or a tag without its signature, which is over the rest.
type signed struct {
	payload   []byte
	signature string
	at        time.Time // when it says it was made
	name      string    // of a tag, as signed
}

func signedCommit(o *objects, h plumbing.Hash) (signed, error) {
	content, err := o.read(plumbing.CommitObject, h)
	if err != nil {
		return signed{}, err
	}
	return splitCommit(content)
}

// headers are what a commit begins with, in this order; only parent may be
// there several times. A reader that took another of two trees than the one
// we verified would serve other files.
var headers = []string{"tree", "parent", "author", "committer"}

// splitCommit takes the signature out of a commit as Git does.
func splitCommit(content []byte) (signed, error) {
	var s signed
	var signature []string
	place, dropping, ours := 0, false, false
	for line := range bytes.Lines(content) {
		text := strings.TrimSuffix(string(line), "\n")
		if text == "" {
			break
		}
		key, value, _ := strings.Cut(text, " ")
		switch {
		case strings.HasPrefix(text, " "):
			if ours {
				signature = append(signature, value)
			}
		case key == "gpgsig" || key == "gpgsig-sha256":
			dropping, ours = true, key == "gpgsig"
			if ours && len(signature) > 0 {
				return signed{}, errors.New("it has two signatures")
			}
			if ours {
				signature = append(signature, value)
			}
		default:
			dropping, ours = false, false
			at, err := next(place, key)
			if err != nil {
				return signed{}, err
			}
			if place = at; key == "committer" {
				s.at = timeOf(value)
			}
		}
		if !dropping {
			s.payload = append(s.payload, line...)
		}
	}
	if place < len(headers) {
		return signed{}, fmt.Errorf("it has no %s", headers[place])
	}
	s.payload = append(s.payload, content[headLength(content):]...)
	if len(signature) > 0 {
		s.signature = strings.Join(signature, "\n") + "\n"
	}
	return s, nil
}

// headLength is where the message begins, with the empty line before it.
func headLength(content []byte) int {
	if at := bytes.Index(content, []byte("\n\n")); at >= 0 {
		return at + 1
	}
	return len(content)
}

// next is the place in headers after a key, which must be the one due.
func next(place int, key string) (int, error) {
	for i, due := range headers {
		if key != due {
			continue
		}
		switch {
		case key == "parent" && place == 1:
			return place, nil
		case key == "author" && place == 1: // no more parents
			return i + 1, nil
		case i == place:
			return i + 1, nil
		}
		return 0, fmt.Errorf("its header %q is there twice or in the wrong place", key)
	}
	if place < len(headers) {
		return 0, fmt.Errorf("its header %q stands before its %s", key, headers[place])
	}
	return place, nil
}

// timeOf reads the time behind a name, zero where there is none.
func timeOf(person string) time.Time {
	fields := strings.Fields(person[strings.LastIndex(person, ">")+1:])
	if len(fields) == 0 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// signedTag reads the annotated tag that was asked for; it must tag the very
// commit that is served, whatever the server said that it leads to.
func signedTag(o *objects, t target) (signed, error) {
	content, err := o.read(plumbing.TagObject, t.want)
	if errors.Is(err, errKind) {
		return signed{}, errors.New("it is a lightweight tag, which cannot be signed")
	}
	if err != nil {
		return signed{}, err
	}
	want := "object " + t.commit.String() + "\ntype commit\ntag "
	if !strings.HasPrefix(string(content), want) {
		return signed{}, fmt.Errorf("it does not tag commit %s", t.commit)
	}
	s := signed{payload: content}
	last := -1 // a message may quote a signature
	for _, mark := range []string{"\n-----BEGIN SSH SIGNATURE-----\n", "\n-----BEGIN PGP SIGNATURE-----\n"} {
		last = max(last, bytes.LastIndex(content, []byte(mark)))
	}
	if last >= 0 {
		s.payload, s.signature = content[:last+1], string(content[last+1:])
	}
	head, _, _ := bytes.Cut(content, []byte("\n\n"))
	s.name, _, _ = strings.Cut(string(head[len(want):]), "\n")
	for line := range strings.Lines(string(head)) {
		if person, ok := strings.CutPrefix(line, "tagger "); ok {
			s.at = timeOf(strings.TrimSpace(person))
		}
	}
	return s, nil
}
