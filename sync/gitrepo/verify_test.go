package gitrepo

import (
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// signer signs with the real tools: ssh-keygen or gpg, called by git.
type signer struct {
	format, key string // gpg.format and user.signingkey
	env         []string
}

// as makes git sign with the key of s.
func (r repo) as(s signer, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "gpg.format=" + s.format, "-c", "user.signingkey=" + s.key}, args...)...)
	cmd.Dir, cmd.Env = r.dir, append(gitEnv(), s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// signedChange writes v into a file and commits it with a signature.
func (r repo) signedChange(s signer, v string) string {
	r.t.Helper()
	r.write("v.txt", v)
	r.git("add", "-A")
	r.as(s, "commit", "-q", "-S", "-m", v)
	return r.git("rev-parse", "HEAD")
}

func sshSigner(t *testing.T, kind string) (s signer, public string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	keygen(t, key, kind, "")
	content, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return signer{format: "ssh", key: key}, strings.TrimSpace(string(content))
}

// pgpSigner makes a key with gpg that expires as told, and exports its public
// half.
func pgpSigner(t *testing.T, name, expires string) (s signer, public string) {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // t.TempDir's path is too long for gpg's socket
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GNUPGHOME="+home)
	run := func(args ...string) string {
		cmd := exec.Command("gpg", append([]string{"--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gpg %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	t.Cleanup(func() {
		kill := exec.Command("gpgconf", "--kill", "gpg-agent")
		kill.Env = env
		_ = kill.Run()
		_ = os.RemoveAll(home)
	})
	run("--quick-generate-key", name+" <"+name+"@example.invalid>", "ed25519", "sign", expires)
	return signer{format: "openpgp", key: name + "@example.invalid", env: []string{"GNUPGHOME=" + home}}, run("--armor", "--export")
}

func textFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, content)
	return path
}

// All signatures are made at 2026-03-05, see gitEnv.
func TestVerifySSH(t *testing.T) {
	good, public := sshSigner(t, "ed25519")
	rsa, rsaPublic := sshSigner(t, "rsa")
	stranger, _ := sshSigner(t, "ecdsa")
	r := newRepo(t)
	r.signedChange(good, "good")
	r.git("branch", "good")
	r.signedChange(rsa, "rsa")
	r.git("branch", "rsa")
	r.signedChange(stranger, "stranger")
	r.git("branch", "stranger")
	r.change("unsigned")
	r.git("branch", "unsigned")
	head := r.git("cat-file", "commit", "good")
	r.git("branch", "forged", r.object("commit", strings.Replace(head, "good", "evil", 1)+"\n"))
	cases := map[string]struct{ branch, signers, want string }{
		"Good":         {"good", "platform@example.invalid " + public, ""},
		"RSA":          {"rsa", "# who may\n\nplatform@example.invalid " + public + "\nother@example.invalid " + rsaPublic, ""},
		"Quoted":       {"good", `"a b,c@example.invalid" namespaces="file,git" ` + public, ""},
		"InTime":       {"good", `x valid-after="20260301",valid-before="20260401120000Z" ` + public, ""},
		"Stranger":     {"stranger", "x " + public, "which"},
		"Unsigned":     {"unsigned", "x " + public, "it is not signed"},
		"Forged":       {"forged", "x " + public, "is wrong"},
		"OtherPurpose": {"good", `x namespaces="file" ` + public, "line 1 of"},
		"TooLate":      {"good", `x valid-before="20260301Z" ` + public, "only before 2026-03-01T00:00:00Z"},
		"TooEarly":     {"good", `x valid-after="20260401Z" ` + public, "only after 2026-04-01T00:00:00Z"},
		"IsAuthority":  {"good", "x cert-authority " + public, "does not list"},
		"Nobody":       {"good", "# nobody yet\n", "lists nobody"},
		"BadLine":      {"good", "x " + public + "\nrubbish\n", "line 2"},
		"BadOption":    {"good", "x touch-required " + public, `option "touch-required" is not known`},
		"BadTime":      {"good", `x valid-after="soon" ` + public, "is no time"},
	}
	s := serve(t, r)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := s.config(Config{Ref: Ref{Branch: tc.branch}, Verify: Verify{Object: "commit", AllowedSignersFile: textFile(t, tc.signers)}})
			if tc.want == "" {
				a := fetch(t, c)
				if !strings.Contains(a.Revision.SignedBy, "SSH key SHA256:") {
					t.Errorf("signed by %q", a.Revision.SignedBy)
				}
				return
			}
			err := fetchError(t, c)
			if !errors.Is(err, ErrSignature) {
				t.Errorf("want ErrSignature, got %v", err)
			}
			wantText(t, err, tc.want)
		})
	}
	// The real git and ssh-keygen must agree about who signed what.
	for name, tc := range cases {
		if tc.want == "" || name == "Stranger" || name == "TooLate" || name == "OtherPurpose" || name == "IsAuthority" {
			cmd := exec.Command("git", "-c", "gpg.ssh.allowedSignersFile="+textFile(t, tc.signers), "verify-commit", tc.branch)
			cmd.Dir, cmd.Env = r.dir, gitEnv()
			if out, err := cmd.CombinedOutput(); (err == nil) != (tc.want == "") {
				t.Errorf("%s: git verify-commit: %v\n%s", name, err, out)
			}
		}
	}
}

// object writes a raw object and returns its hash.
func (r repo) object(kind, content string) string {
	r.t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", kind, "-w", "--stdin", "--literally")
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, gitEnv(), strings.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestVerifySSHCertificate(t *testing.T) {
	authority, authorityPublic := sshSigner(t, "ed25519")
	key, _ := sshSigner(t, "ed25519")
	if out, err := exec.Command("ssh-keygen", "-q", "-s", authority.key, "-I", "id", "-n", "dev@example.invalid", "-V", "20260101:20260601", key.key+".pub").CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	cert := signer{format: "ssh", key: key.key + "-cert.pub", env: []string{"SSH_AUTH_SOCK=" + startAgent(t, key.key)}}
	r := newRepo(t)
	r.signedChange(cert, "one")
	check := func(name, signers, want string) {
		t.Run(name, func(t *testing.T) {
			c := Config{URL: r.dir, Verify: Verify{Object: "commit", AllowedSignersFile: textFile(t, signers)}}
			if want == "" {
				if a := fetch(t, c); !strings.HasPrefix(a.Revision.SignedBy, "dev@example.invalid ") {
					t.Errorf("signed by %q", a.Revision.SignedBy)
				}
				return
			}
			wantText(t, fetchError(t, c), want)
		})
	}
	check("Good", "*@example.invalid cert-authority "+authorityPublic, "")
	check("ForOthers", "ops@example.invalid cert-authority "+authorityPublic, "is for others")
	check("Excluded", "*@example.invalid,!dev@* cert-authority "+authorityPublic, "is for others")
	check("NoAuthority", "*@example.invalid "+authorityPublic, "does not list")
}

func TestVerifyOpenPGP(t *testing.T) {
	good, public := pgpSigner(t, "good", "never")
	stranger, strangerPublic := pgpSigner(t, "stranger", "never")
	r := newRepo(t)
	r.signedChange(good, "good")
	r.git("branch", "good")
	head := r.git("cat-file", "commit", "good")
	r.git("branch", "forged", r.object("commit", strings.Replace(head, "good", "evil", 1)+"\n"))
	tree, _, _ := strings.Cut(head, "\n")
	doubled := tree + "\n" + head
	r.git("update-ref", "refs/heads/doubled", r.object("commit", doubled+"\n"))
	r.signedChange(stranger, "stranger")
	for name, tc := range map[string]struct{ branch, keys, want string }{
		"Good":      {"good", public, ""},
		"TwoBlocks": {"good", strangerPublic + "\n" + public, ""},
		"Stranger":  {"main", public, "does not have"},
		"Forged":    {"forged", public, "is wrong"},
		"Doubled":   {"doubled", public, `"tree" is there twice`},
		"NoKeys":    {"good", "x", "no armored key"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{URL: r.dir, Ref: Ref{Branch: tc.branch}, Verify: Verify{Object: "commit", OpenPGPKeysFile: textFile(t, tc.keys)}}
			if tc.want == "" {
				if a := fetch(t, c); !strings.HasPrefix(a.Revision.SignedBy, "good <good@example.invalid> (OpenPGP key ") {
					t.Errorf("signed by %q", a.Revision.SignedBy)
				}
				return
			}
			wantText(t, fetchError(t, c), tc.want)
		})
	}
	t.Run("NotSSH", func(t *testing.T) {
		_, key := sshSigner(t, "ed25519")
		wantText(t, fetchError(t, Config{URL: r.dir, Verify: Verify{Object: "commit", AllowedSignersFile: textFile(t, "x "+key)}}), "signed by OpenPGP")
	})
}

// What a key signed while it was valid stays good when it has expired.
func TestVerifyOpenPGPExpired(t *testing.T) {
	short, public := pgpSigner(t, "short", "seconds=3")
	r := newRepo(t)
	r.signedChange(short, "one")
	time.Sleep(4 * time.Second)
	fetch(t, Config{URL: r.dir, Verify: Verify{Object: "commit", OpenPGPKeysFile: textFile(t, public)}})
}

func TestVerifyTag(t *testing.T) {
	good, public := sshSigner(t, "ed25519")
	pgp, pgpPublic := pgpSigner(t, "tagger", "never")
	r := newRepo(t)
	r.change("one")
	r.as(good, "tag", "-s", "-m", "x", "v1.0.0")
	r.as(pgp, "tag", "-s", "-m", "x", "v1.1.0")
	r.git("tag", "-a", "-m", "x", "v1.2.0")
	r.git("tag", "v1.3.0")
	r.as(good, "tag", "-s", "-m", "x", "nested", "v1.0.0")
	tag := r.git("cat-file", "tag", "v1.0.0")
	second := r.change("two")
	r.git("update-ref", "refs/tags/forged", r.object("tag", strings.Replace(tag, r.git("rev-parse", "v1.0.0^{commit}"), second, 1)+"\n"))
	s := serve(t, r)
	verify := Verify{Object: "tag", AllowedSignersFile: textFile(t, "dev@example.invalid "+public), OpenPGPKeysFile: textFile(t, pgpPublic)}
	for name, tc := range map[string]struct{ tag, want string }{
		"SSH": {"v1.0.0", ""}, "OpenPGP": {"v1.1.0", ""}, "Unsigned": {"v1.2.0", "it is not signed"}, "Light": {"v1.3.0", "lightweight"},
		"Nested": {"nested", "does not tag commit"}, "Forged": {"forged", "is wrong"},
	} {
		for place, c := range map[string]Config{"Remote": s.config(Config{}), "Local": local(Config{}, r.dir)} {
			t.Run(name+place, func(t *testing.T) {
				c.Ref, c.Verify = Ref{Tag: tc.tag}, verify
				if tc.want == "" {
					if a := fetch(t, c); content(t, a.Files, "v.txt") != "one" || a.Revision.SignedBy == "" {
						t.Errorf("got %+v", a.Revision)
					}
					return
				}
				wantText(t, fetchError(t, c), tc.want)
			})
		}
	}
	// A tag that is signed after its commit was downloaded must be got, too.
	r.git("tag", "v2.0.0", "v1.0.0^{commit}")
	c := s.config(Config{Ref: Ref{Tag: "v2.0.0"}})
	fetch(t, c)
	r.as(good, "tag", "-f", "-s", "-m", "x", "v2.0.0", "v1.0.0^{commit}")
	c.Verify = verify
	fetch(t, c)
}

// The last good commit stays, in this process and for the next one.
func TestVerifyKeepsTheLastGood(t *testing.T) {
	good, public := sshSigner(t, "ed25519")
	r := newRepo(t)
	first := r.signedChange(good, "one")
	s := serve(t, r)
	verify := Verify{Object: "commit", AllowedSignersFile: textFile(t, "x "+public)}
	configs := map[string]Config{"remote": s.config(Config{Verify: verify}), "local": {URL: r.dir, Cache: t.TempDir(), Verify: verify}}
	repositories := map[string]*Repository{}
	for place, c := range configs {
		repositories[place] = open(t, c)
		fetchFrom(t, repositories[place])
	}
	r.change("two")
	for place, c := range configs {
		for who, repository := range map[string]*Repository{"this process": repositories[place], "the next": open(t, c)} {
			if _, err := repository.Fetch(t.Context()); !errors.Is(err, ErrSignature) {
				t.Fatalf("%s, %s: want ErrSignature, got %v", place, who, err)
			}
			a, err := repository.Last(t.Context())
			if err != nil {
				t.Fatalf("%s, %s: %v", place, who, err)
			}
			if a.Revision.Commit != first || content(t, a.Files, "v.txt") != "one" || a.Revision.SignedBy == "" {
				t.Errorf("%s, %s: got %+v", place, who, a.Revision)
			}
		}
		// Whoever does not trust the one that signed it, is not served it.
		_, other := sshSigner(t, "ed25519")
		c.Verify.AllowedSignersFile = textFile(t, "x "+other)
		if _, err := open(t, c).Last(t.Context()); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: want ErrSignature, got %v", place, err)
		}
	}
}

func FuzzSplitCommit(f *testing.F) {
	f.Add([]byte("tree a\nparent b\nauthor x <x> 1 +0000\ncommitter x <x> 2 +0000\ngpgsig -----BEGIN SSH SIGNATURE-----\n a\n b\nencoding x\n\nm\n"))
	f.Add([]byte("tree a\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := splitCommit(content)
		if err != nil {
			return
		}
		if s.signature == "" && string(s.payload) != string(content) && !strings.Contains(string(content), "gpgsig") {
			t.Errorf("payload %q of %q", s.payload, content)
		}
		if len(s.payload)+len(s.signature) > len(content)+1 {
			t.Errorf("%d bytes of %d", len(s.payload)+len(s.signature), len(content))
		}
	})
}

func FuzzParseSigners(f *testing.F) {
	f.Add("a,b namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGw0\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parseSigners([]byte(text)) })
}
