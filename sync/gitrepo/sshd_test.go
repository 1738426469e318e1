package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sshd is a real OpenSSH server on loopback that serves repositories.
type sshd struct {
	dir, address string
	known        string // known_hosts file
	key          string // of the user, without a passphrase
	user         string
}

// keygen makes a key pair with ssh-keygen.
func keygen(t *testing.T, path, kind, passphrase string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "t", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

// startSSHD starts a server that shows a host key of this kind.
func startSSHD(t *testing.T, kind string) *sshd {
	t.Helper()
	binary := "/usr/sbin/sshd"
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("the Debian package openssh-server is needed: %v", err)
	}
	s := &sshd{dir: t.TempDir(), user: os.Getenv("USER")}
	if out, err := exec.Command("id", "-un").Output(); err == nil {
		s.user = strings.TrimSpace(string(out))
	}
	s.key = filepath.Join(s.dir, "user")
	keygen(t, s.key, "ed25519", "")
	keygen(t, filepath.Join(s.dir, "host"), kind, "")
	s.authorize(t, s.key)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(s.address)
	config := filepath.Join(s.dir, "config")
	writeFile(t, config, fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nAcceptEnv -*\nLogLevel ERROR\n",
		port, filepath.Join(s.dir, "host"), filepath.Join(s.dir, "authorized")))
	if os.Geteuid() == 0 { // where it parks its children
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-D", "-e", "-f", config)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 100 {
		if conn, err := net.Dial("tcp", s.address); err == nil {
			_ = conn.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.known = filepath.Join(s.dir, "known_hosts")
	s.trust(t, s.known, filepath.Join(s.dir, "host.pub"))
	return s
}

func (s *sshd) authorize(t *testing.T, key string) {
	t.Helper()
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "authorized"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(public); err != nil {
		t.Fatal(err)
	}
}

// trust writes a known_hosts file for the server with this public key.
func (s *sshd) trust(t *testing.T, file, public string) {
	t.Helper()
	content, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(s.address)
	writeFile(t, file, fmt.Sprintf("[%s]:%s %s", host, port, content))
}

func (s *sshd) config(t *testing.T, r repo) Config {
	return Config{
		URL: "ssh://" + s.user + "@" + s.address + r.dir, Cache: filepath.Join(t.TempDir(), "cache"),
		Auth: Auth{SSH: SSH{KeyFile: s.key, KnownHostsFile: s.known}},
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSSH(t *testing.T) {
	r := newRepo(t)
	first := r.change("one")
	s := startSSHD(t, "ed25519")
	c := s.config(t, r)
	repository := open(t, c)
	a := fetchFrom(t, repository)
	if a.Revision.Commit != first || content(t, a.Files, "v.txt") != "one" {
		t.Errorf("got %+v", a.Revision)
	}
	second := r.change("two")
	if a := fetchFrom(t, repository); a.Revision.Commit != second || content(t, a.Files, "v.txt") != "two" {
		t.Errorf("got %+v", a.Revision)
	}
	t.Run("NothingMoved", func(t *testing.T) {
		if a := fetch(t, c); a.Revision.Commit != second {
			t.Errorf("got %+v", a.Revision)
		}
	})
	t.Run("Commit", func(t *testing.T) { // asked for by itself, then looked for
		c := c
		c.Ref.Commit = first
		if a := fetch(t, c); content(t, a.Files, "v.txt") != "one" {
			t.Errorf("got %+v", a.Revision)
		}
	})
	t.Run("OddPath", func(t *testing.T) {
		odd := repo{t: t, dir: filepath.Join(t.TempDir(), "it's a $(touch x) repo!")}
		if err := os.Rename(newRepoWith(t, "odd").dir, odd.dir); err != nil {
			t.Fatal(err)
		}
		c := s.config(t, odd)
		c.URL = s.user + "@127.0.0.1:" + odd.dir
		repository := open(t, c)
		repository.at.remote.Host = s.address // the short form knows no port
		if a := fetchFrom(t, repository); content(t, a.Files, "v.txt") != "odd" {
			t.Errorf("got %+v", a.Revision)
		}
	})
	t.Run("Empty", func(t *testing.T) {
		if err := fetchError(t, s.config(t, newRepo(t))); !errors.Is(err, ErrEmpty) {
			t.Errorf("want ErrEmpty, got %v", err)
		}
	})
	t.Run("NoRepository", func(t *testing.T) {
		wantText(t, fetchError(t, s.config(t, repo{t: t, dir: t.TempDir()})), "the server refused", "does not appear to be a git repository")
	})
	t.Run("NoBranch", func(t *testing.T) {
		c := c
		c.Ref.Branch = "mian"
		if err := fetchError(t, c); !errors.Is(err, ErrRefNotFound) {
			t.Errorf("want ErrRefNotFound, got %v", err)
		}
	})
}

func newRepoWith(t *testing.T, v string) repo {
	t.Helper()
	r := newRepo(t)
	r.change(v)
	return r
}

func TestSSHKeys(t *testing.T) {
	r := newRepoWith(t, "one")
	s := startSSHD(t, "rsa")
	locked, stranger := filepath.Join(s.dir, "locked"), filepath.Join(s.dir, "stranger")
	keygen(t, locked, "rsa", secret)
	keygen(t, stranger, "ecdsa", "")
	s.authorize(t, locked)
	good := s.config(t, r)
	with := func(change func(*SSH)) Config {
		c := good
		change(&c.Auth.SSH)
		return c
	}
	t.Run("Passphrase", func(t *testing.T) {
		fetch(t, with(func(k *SSH) { k.KeyFile, k.PassphraseFile = locked, secretFile(t, secret+"\n") }))
	})
	t.Run("NoPassphrase", func(t *testing.T) {
		wantText(t, fetchError(t, with(func(k *SSH) { k.KeyFile = locked })), "protected by a passphrase", "passphraseFile")
	})
	t.Run("WrongPassphrase", func(t *testing.T) {
		wantText(t, fetchError(t, with(func(k *SSH) { k.KeyFile, k.PassphraseFile = locked, secretFile(t, secret+"x") })), "does not open it")
	})
	t.Run("Stranger", func(t *testing.T) {
		if err := fetchError(t, with(func(k *SSH) { k.KeyFile = stranger })); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("want ErrUnauthorized, got %v", err)
		}
	})
	t.Run("NoKey", func(t *testing.T) {
		wantText(t, fetchError(t, with(func(k *SSH) { k.KeyFile = secretFile(t, secret) })), "no private key that can be read")
	})
	t.Run("Agent", func(t *testing.T) {
		t.Setenv("SSH_AUTH_SOCK", startAgent(t, s.key))
		fetch(t, with(func(k *SSH) { k.KeyFile, k.Agent = "", true }))
	})
	t.Run("NoAgent", func(t *testing.T) {
		t.Setenv("SSH_AUTH_SOCK", "")
		wantText(t, fetchError(t, with(func(k *SSH) { k.KeyFile, k.Agent = "", true })), "SSH_AUTH_SOCK is not set")
	})
}

// Threat T30: a server that is not known is never talked to.
func TestSSHHostKeys(t *testing.T) {
	r := newRepoWith(t, "one")
	s := startSSHD(t, "ed25519")
	other := filepath.Join(s.dir, "other")
	keygen(t, other, "ed25519", "")
	fingerprint, err := exec.Command("ssh-keygen", "-l", "-f", filepath.Join(s.dir, "host.pub")).Output()
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Fields(string(fingerprint))[1]
	good := s.config(t, r)
	check := func(name, content string, parts ...string) {
		t.Run(name, func(t *testing.T) {
			c := good
			c.Auth.SSH.KnownHostsFile = filepath.Join(t.TempDir(), "known_hosts")
			writeFile(t, c.Auth.SSH.KnownHostsFile, content)
			err := fetchError(t, c)
			if !errors.Is(err, ErrHostKey) {
				t.Errorf("want ErrHostKey, got %v", err)
			}
			wantText(t, err, append(parts, shown)...)
		})
	}
	host, port, _ := net.SplitHostPort(s.address)
	line := func(marker, file string) string {
		public, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s[%s]:%s %s", marker, host, port, public)
	}
	check("Unknown", "", "is not in", "ssh-keyscan")
	check("Replaced", line("", other+".pub"), "its key was replaced", "line 1")
	check("Revoked", line("", filepath.Join(s.dir, "host.pub"))+line("@revoked ", filepath.Join(s.dir, "host.pub")), "as revoked")
	t.Run("NoFile", func(t *testing.T) {
		c := good
		c.Auth.SSH.KnownHostsFile = filepath.Join(t.TempDir(), "absent")
		wantText(t, fetchError(t, c), "reading known_hosts", "absent")
	})
	// The file has keys of two kinds, of which the server has one.
	t.Run("AnotherKindToo", func(t *testing.T) {
		rsa := filepath.Join(t.TempDir(), "rsa")
		keygen(t, rsa, "rsa", "")
		c := good
		c.Auth.SSH.KnownHostsFile = filepath.Join(t.TempDir(), "known_hosts")
		writeFile(t, c.Auth.SSH.KnownHostsFile, line("", filepath.Join(s.dir, "host.pub")))
		fetch(t, c)
	})
}

// Measured fact E8: go-git's own SSH waits for such servers for ever.
func TestSSHReturnsAtTheDeadline(t *testing.T) {
	s := startSSHD(t, "ed25519")
	r := newRepoWith(t, "one")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	silent := s.config(t, r)
	silent.URL = "ssh://git@" + listener.Addr().String() + "/r.git"
	stalled := s.config(t, r)
	_, port, _ := net.SplitHostPort(stall(t, s.address, 3000))
	host, _, _ := net.SplitHostPort(s.address)
	public, err := os.ReadFile(filepath.Join(s.dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	stalled.URL = "ssh://" + s.user + "@" + net.JoinHostPort(host, port) + r.dir
	stalled.Auth.SSH.KnownHostsFile = filepath.Join(t.TempDir(), "known_hosts")
	writeFile(t, stalled.Auth.SSH.KnownHostsFile, fmt.Sprintf("[%s]:%s %s", host, port, public))
	for name, c := range map[string]Config{"Silent": silent, "Stalled": stalled} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := open(t, c).Fetch(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("want a deadline error, got %v", err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
		t.Run(name+"WithoutDeadline", func(t *testing.T) {
			repository := open(t, c)
			repository.limits.idle = 300 * time.Millisecond
			_, err := repository.Fetch(t.Context())
			if !errors.Is(err, ErrUnreachable) {
				t.Errorf("want ErrUnreachable, got %v", err)
			}
		})
	}
}

// stall passes on the first bytes of a server's and then nothing more, and
// returns where it listens.
func stall(t *testing.T, to string, bytes int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.CopyN(client, server, bytes) }()
		}
	}()
	return listener.Addr().String()
}

// startAgent starts a real ssh-agent that has a key, and returns its socket.
func startAgent(t *testing.T, key string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		_ = os.RemoveAll(dir)
	})
	var out []byte
	for range 100 {
		add := exec.Command("ssh-add", "-q", key)
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		if out, err = add.CombinedOutput(); err == nil {
			return socket
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("ssh-add: %v\n%s", err, out)
	return ""
}
