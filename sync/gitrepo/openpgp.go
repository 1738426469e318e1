package gitrepo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// openPGPSigner checks an OpenPGP signature against the keys. A key that has
// expired since it signed is good, as Git has it; one that was revoked is not,
// whenever it signed.
func (v Verify) openPGPSigner(s signed) (string, error) {
	if v.OpenPGPKeysFile == "" {
		return "", errors.New("it is signed by OpenPGP, and verify names allowed signers of SSH only")
	}
	content, err := readFile(v.OpenPGPKeysFile)
	if err != nil {
		return "", fmt.Errorf("reading the OpenPGP keys: %w", err)
	}
	keys, err := publicKeys(content)
	if err != nil {
		return "", fmt.Errorf("reading the OpenPGP keys in %q: %w", v.OpenPGPKeysFile, err)
	}
	block, err := armor.Decode(strings.NewReader(s.signature))
	if err != nil {
		return "", errors.New("its OpenPGP signature cannot be read")
	}
	raw, err := io.ReadAll(block.Body)
	if err != nil {
		return "", errors.New("its OpenPGP signature cannot be read")
	}
	signature, signer, err := openpgp.VerifyDetachedSignature(keys, bytes.NewReader(s.payload), bytes.NewReader(raw), nil)
	if errors.Is(err, pgperrors.ErrKeyExpired) && signature != nil {
		then := &packet.Config{Time: func() time.Time { return signature.CreationTime }}
		_, signer, err = openpgp.VerifyDetachedSignature(keys, bytes.NewReader(s.payload), bytes.NewReader(raw), then)
	}
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return "", fmt.Errorf("it is signed by OpenPGP key %s, which %q does not have", issuer(raw), v.OpenPGPKeysFile)
	case err != nil:
		return "", fmt.Errorf("its OpenPGP signature by key %s is wrong: %w", issuer(raw), err)
	}
	return fmt.Sprintf("%s (OpenPGP key %s)", identityOf(signer), signer.PrimaryKey.KeyIdString()), nil
}

// publicKeys reads every armored block of a file.
func publicKeys(content []byte) (openpgp.EntityList, error) {
	var all openpgp.EntityList
	for r := bufio.NewReader(bytes.NewReader(content)); ; {
		block, err := armor.Decode(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New("it is not armored, as gpg --armor --export writes it")
		}
		keys, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
	}
	if len(all) == 0 {
		return nil, errors.New("it has no armored key, as gpg --armor --export writes it")
	}
	for _, e := range all {
		if e.PrivateKey != nil {
			return nil, errors.New("it has a private key: export the public one with gpg --armor --export")
		}
	}
	return all, nil
}

// issuer is the key that a signature says it is by.
func issuer(raw []byte) string {
	p, err := packet.NewReader(bytes.NewReader(raw)).Next()
	if s, ok := p.(*packet.Signature); ok && err == nil && s.IssuerKeyId != nil {
		return fmt.Sprintf("%016X", *s.IssuerKeyId)
	}
	return "unknown"
}

func identityOf(e *openpgp.Entity) string {
	if id := e.PrimaryIdentity(); id != nil {
		return id.Name
	}
	return "unnamed"
}
