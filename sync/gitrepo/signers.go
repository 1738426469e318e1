package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// namespace is what Git signs commits and tags for; a signature made for
// anything else, a file say, does not count.
const namespace = "git"

// sshSigner checks an SSH signature against the allowed signers.
func (v Verify) sshSigner(s signed) (string, error) {
	if v.AllowedSignersFile == "" {
		return "", errors.New("it is signed by SSH, and verify names OpenPGP keys only")
	}
	content, err := readFile(v.AllowedSignersFile)
	if err != nil {
		return "", fmt.Errorf("reading the allowed signers: %w", err)
	}
	allowed, err := parseSigners(content)
	if err != nil {
		return "", fmt.Errorf("reading the allowed signers in %q: %w", v.AllowedSignersFile, err)
	}
	signature, err := sshsig.Unarmor([]byte(s.signature))
	if err != nil {
		return "", errors.New("its SSH signature cannot be read")
	}
	if f := signature.Signature.Format; f == ssh.KeyAlgoRSA || f == "ssh-dss" {
		return "", fmt.Errorf("its SSH signature is of algorithm %s, which is broken", f)
	}
	shown := ssh.FingerprintSHA256(signature.PublicKey)
	if err := sshsig.Verify(bytes.NewReader(s.payload), signature, signature.PublicKey, signature.HashAlgorithm, namespace); err != nil {
		return "", fmt.Errorf("its SSH signature by key %s is wrong: %w", shown, err)
	}
	why := fmt.Sprintf("it is signed by SSH key %s, which %q does not list", shown, v.AllowedSignersFile)
	for _, a := range allowed {
		who, refused := a.admits(signature.PublicKey, s.at)
		if who != "" {
			return fmt.Sprintf("%s (SSH key %s)", who, shown), nil
		}
		if refused != "" {
			why = fmt.Sprintf("it is signed by SSH key %s, and line %d of %q %s", shown, a.line, v.AllowedSignersFile, refused)
		}
	}
	return "", errors.New(why)
}

// allowedSigner is a line of an allowed signers file.
type allowedSigner struct {
	line          int
	principals    []string
	key           ssh.PublicKey
	authority     bool     // the key signs certificates
	namespaces    []string // nil: any
	after, before time.Time
}

// parseSigners reads a file as ssh-keygen(1) describes it under ALLOWED
// SIGNERS. What cannot be read is an error: a line that is passed over could be
// the one that limits a key.
func parseSigners(content []byte) ([]allowedSigner, error) {
	var all []allowedSigner
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		a, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		a.line = i + 1
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, errors.New("it lists nobody")
	}
	return all, nil
}

func parseSigner(line string) (allowedSigner, error) {
	at := strings.IndexAny(line, " \t")
	if at < 0 {
		at = len(line)
	}
	names, rest := line[:at], line[at:]
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		names, rest, _ = strings.Cut(quoted, `"`)
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(strings.TrimSpace(rest)))
	if err != nil {
		return allowedSigner{}, errors.New("it is not PRINCIPALS [OPTIONS] KEYTYPE KEY")
	}
	a := allowedSigner{principals: strings.Split(names, ","), key: key}
	for _, o := range options {
		if err := a.option(o); err != nil {
			return allowedSigner{}, err
		}
	}
	return a, nil
}

func (a *allowedSigner) option(o string) (err error) {
	name, value, _ := strings.Cut(o, "=")
	value = strings.Trim(value, `"`)
	switch strings.ToLower(name) {
	case "cert-authority":
		a.authority = true
	case "namespaces":
		a.namespaces = strings.Split(value, ",")
	case "valid-after":
		a.after, err = signerTime(value)
	case "valid-before":
		a.before, err = signerTime(value)
	default:
		return fmt.Errorf("option %q is not known", name)
	}
	return err
}

// signerTime reads YYYYMMDD[HHMM[SS]][Z], without Z in this machine's zone.
func signerTime(text string) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	zone := time.Local
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(layout) == len(digits) {
			return time.ParseInLocation(layout, digits, zone)
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time of the form YYYYMMDD[HHMM[SS]][Z]", text)
}

// admits returns who a key belongs to, or why a line that is about the key does
// not let it sign at that time. Both are empty for a line about another key.
func (a *allowedSigner) admits(key ssh.PublicKey, at time.Time) (who, refused string) {
	cert, certified := key.(*ssh.Certificate)
	mine := key
	if a.authority && certified {
		mine = cert.SignatureKey
	}
	switch {
	case a.authority != certified || !bytes.Equal(mine.Marshal(), a.key.Marshal()):
		return "", ""
	case a.namespaces != nil && !lists(a.namespaces, namespace):
		return "", "does not let it sign for git"
	case !a.after.IsZero() && at.Before(a.after):
		return "", "lets it sign only after " + a.after.UTC().Format(time.RFC3339)
	case !a.before.IsZero() && !at.Before(a.before):
		return "", "lets it sign only before " + a.before.UTC().Format(time.RFC3339)
	case a.authority:
		return a.certified(cert, at)
	}
	// ssh-keygen names a line by any of its patterns that the line is for.
	if !slices.ContainsFunc(a.principals, func(p string) bool { return lists(a.principals, p) }) {
		return "", "names nobody"
	}
	return strings.Join(a.principals, ","), ""
}

// certified checks a certificate that this line's authority made.
func (a *allowedSigner) certified(cert *ssh.Certificate, at time.Time) (who, refused string) {
	checker := ssh.CertChecker{Clock: func() time.Time { return at }}
	if cert.CertType != ssh.UserCert {
		return "", "made it a certificate of a host"
	}
	for _, p := range cert.ValidPrincipals {
		if lists(a.principals, p) && checker.CheckCert(p, cert) == nil {
			return p, ""
		}
	}
	return "", "made its certificate, which is for others or not valid at that time"
}

// lists tells whether a list of patterns has a text; a pattern after ! excludes.
func lists(patterns []string, text string) bool {
	found := false
	for _, p := range patterns {
		not, excludes := strings.CutPrefix(p, "!")
		if excludes && fits(not, text) {
			return false
		}
		found = found || !excludes && fits(p, text)
	}
	return found
}

// fits matches OpenSSH's patterns, in which * and ? are all that is special.
func fits(pattern, text string) bool {
	escaped := strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(strings.ReplaceAll(pattern, "/", "\x00"))
	ok, err := path.Match(escaped, strings.ReplaceAll(text, "/", "\x00"))
	return err == nil && ok
}
