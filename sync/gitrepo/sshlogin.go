package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	stock "golang.org/x/crypto/ssh/knownhosts"
)

// defaultUser is the user of an ssh URL that names none, as all forges have it.
const defaultUser = "git"

// config is how to log in. What the check of the server's key found is in
// checked, because the library's error hides it.
func (s SSH) config(ctx context.Context, at location) (config *ssh.ClientConfig, checked *error, err error) {
	method, err := s.method(ctx)
	if err != nil {
		return nil, nil, err
	}
	hosts, err := knownhosts.NewDB(s.KnownHostsFile)
	if err != nil {
		return nil, nil, fmt.Errorf("reading known_hosts: %w", err)
	}
	address := net.JoinHostPort(at.remote.Hostname(), cmp.Or(at.remote.Port(), "22"))
	checked = new(error)
	known := hosts.HostKeyCallback()
	config = &ssh.ClientConfig{
		User: cmp.Or(at.remote.User.Username(), defaultUser), Auth: []ssh.AuthMethod{method},
		HostKeyAlgorithms: hosts.HostKeyAlgorithms(address), // else the server may show a key of a kind that the file lacks
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			*checked = s.explainHost(host, key, known(host, remote, key))
			return *checked
		},
	}
	return config, checked, nil
}

// explainHost words what is wrong with a server's key.
func (s SSH) explainHost(host string, key ssh.PublicKey, err error) error {
	if err == nil {
		return nil
	}
	shown := ssh.FingerprintSHA256(key)
	var wrong *stock.KeyError
	var revoked *stock.RevokedError
	switch {
	case errors.As(err, &revoked):
		return fmt.Errorf("%w: server %q shows %s key %s, which %q has as revoked", ErrHostKey, host, key.Type(), shown, s.KnownHostsFile)
	case errors.As(err, &wrong) && len(wrong.Want) > 0:
		have := wrong.Want[0]
		return fmt.Errorf("%w: server %q shows %s key %s, and line %d of %q has %s: its key was replaced, or somebody stands between: ask its operator", ErrHostKey, host, key.Type(), shown, have.Line, s.KnownHostsFile, ssh.FingerprintSHA256(have.Key))
	case errors.As(err, &wrong):
		return fmt.Errorf("%w: server %q is not in %q; it shows %s key %s: compare that with what its operator publishes, then add it with ssh-keyscan", ErrHostKey, host, s.KnownHostsFile, key.Type(), shown)
	}
	return fmt.Errorf("%w: server %q shows %s key %s: %w", ErrHostKey, host, key.Type(), shown, err)
}

func (s SSH) method(ctx context.Context) (ssh.AuthMethod, error) {
	if s.Agent {
		return fromAgent(ctx)
	}
	signer, err := s.signer()
	if err != nil {
		return nil, err
	}
	return ssh.PublicKeys(signer), nil
}

// signer reads the private key. No error has any of it or of the passphrase.
func (s SSH) signer() (ssh.Signer, error) {
	content, err := readFile(s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the ssh key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(content)
	var locked *ssh.PassphraseMissingError
	if !errors.As(err, &locked) {
		if err != nil {
			return nil, fmt.Errorf("reading the ssh key %q: it is no private key that can be read", s.KeyFile)
		}
		return signer, nil
	}
	if s.PassphraseFile == "" {
		return nil, fmt.Errorf("reading the ssh key %q: it is protected by a passphrase: name the file that holds it in passphraseFile", s.KeyFile)
	}
	passphrase, err := readSecret(s.PassphraseFile)
	if err != nil {
		return nil, fmt.Errorf("reading the passphrase: %w", err)
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(content, []byte(passphrase))
	if err != nil {
		return nil, fmt.Errorf("reading the ssh key %q: the passphrase in %q does not open it", s.KeyFile, s.PassphraseFile)
	}
	return signer, nil
}

// fromAgent uses the keys of the agent, which signs and keeps them to itself.
func fromAgent(ctx context.Context) (ssh.AuthMethod, error) {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, errors.New("asking the ssh agent: SSH_AUTH_SOCK is not set: start one and add the key, or name the key's file in keyFile")
	}
	return ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, fmt.Errorf("asking the ssh agent: %w", err)
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // the signers use it until the fetch is over
		if until, ok := ctx.Deadline(); ok {
			if err := conn.SetDeadline(until); err != nil {
				return nil, fmt.Errorf("asking the ssh agent: %w", err)
			}
		}
		return agent.NewClient(conn).Signers()
	}), nil
}
