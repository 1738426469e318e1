package gitrepo

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// agree asks the real git and ssh-keygen, too: they and we trust the same.
func agree(t *testing.T, r repo, signers, verb, name string, trusted bool) {
	t.Helper()
	cmd := exec.Command("git", "-c", "gpg.ssh.allowedSignersFile="+textFile(t, signers), verb, name)
	cmd.Dir, cmd.Env = r.dir, gitEnv()
	if out, err := cmd.CombinedOutput(); (err == nil) != trusted {
		t.Errorf("git %s: %v\n%s", verb, err, out)
	}
}

// signature is that of ssh-keygen over a payload.
func (s signer) signature(t *testing.T, payload string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "payload")
	writeFile(t, file, payload)
	if out, err := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", s.key, file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	content, err := os.ReadFile(file + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Lines of allowed signers mean to us what they mean to ssh-keygen.
func TestVerifySignersAsSSHKeygen(t *testing.T) {
	good, public := sshSigner(t, "ed25519")
	r := newRepo(t)
	r.signedChange(good, "good")
	for name, tc := range map[string]struct{ signers, want string }{
		"Tabs":              {"dev@example.invalid\t" + strings.Replace(public, " ", "\t", 1), ""},
		"TabsAndOptions":    {"dev@example.invalid\tnamespaces=\"git\"\t" + public, ""},
		"Blanks":            {"  dev@example.invalid   " + public, ""},
		"ExcludedNamespace": {`dev@example.invalid namespaces="*,!git" ` + public, "does not let it sign for git"},
		"OthersToo":         {`dev@example.invalid namespaces="file,g?t" ` + public, ""},
		"NobodyButExcluded": {"!dev@example.invalid " + public, "names nobody"},
		"Excluded":          {"!ops@example.invalid,dev@example.invalid " + public, ""},
	} {
		t.Run(name, func(t *testing.T) {
			agree(t, r, tc.signers, "verify-commit", "HEAD", tc.want == "")
			c := Config{URL: r.dir, Verify: Verify{Object: "commit", AllowedSignersFile: textFile(t, tc.signers)}}
			if tc.want == "" {
				if a := fetch(t, c); !strings.HasPrefix(a.Revision.SignedBy, "dev@example.invalid (") && !strings.Contains(a.Revision.SignedBy, "ops@") {
					t.Errorf("signed by %q", a.Revision.SignedBy)
				}
				return
			}
			wantText(t, fetchError(t, c), tc.want)
		})
	}
}

// A signature is found where Git finds it, and counts for what Git lets it.
func TestVerifyShapes(t *testing.T) {
	good, public := sshSigner(t, "ed25519")
	stranger, _ := sshSigner(t, "ed25519")
	pgp, pgpPublic := pgpSigner(t, "shapes", "never")
	signers := "dev@example.invalid " + public
	r := newRepo(t)
	head := r.change("one")
	r.as(good, "tag", "-s", "-m", "v1", "v1.0.0")
	tag := func(name, payload, rest string) {
		r.git("update-ref", "refs/tags/"+name, r.object("tag", payload+rest))
	}
	quoting := "object " + head + "\ntype commit\ntag quoting\ntagger t <t@example.invalid> 1772687167 +0000\n\nas in\n-----BEGIN PGP SIGNATURE-----\n"
	tag("quoting", quoting, good.signature(t, quoting))
	r.as(pgp, "tag", "-s", "-m", "x", "pgp")
	appended := r.git("cat-file", "tag", "pgp") + "\n"
	r.git("update-ref", "refs/tags/pgp", r.object("tag", appended+stranger.signature(t, appended)))
	dateless := "object " + head + "\ntype commit\ntag dateless\n\nx\n"
	tag("dateless", dateless, good.signature(t, dateless))
	r.git("update-ref", "refs/tags/v9.9.9", "refs/tags/v1.0.0")
	for name, tc := range map[string]struct {
		want string
		git  bool
	}{
		"v1.0.0": {"", true}, "quoting": {"", true}, "pgp": {"does not list", false}, "dateless": {"when it was made", false},
		"v9.9.9": {"", true}, // another name for it: git tag -f latest v1.0.0
	} {
		t.Run(name, func(t *testing.T) {
			agree(t, r, signers, "verify-tag", name, tc.git)
			c := Config{URL: r.dir, Ref: Ref{Tag: name}, Verify: Verify{Object: "tag", AllowedSignersFile: textFile(t, signers), OpenPGPKeysFile: textFile(t, pgpPublic)}}
			if tc.want == "" {
				fetch(t, c)
				return
			}
			wantText(t, fetchError(t, c), tc.want)
		})
	}
	t.Run("Version", func(t *testing.T) {
		verify := Verify{Object: "tag", AllowedSignersFile: textFile(t, signers)}
		fetch(t, Config{URL: r.dir, Ref: Ref{Semver: "^1"}, Verify: verify})
		wantText(t, fetchError(t, Config{URL: r.dir, Ref: Ref{Semver: "*"}, Verify: verify}), `it is signed as tag "v1.0.0"`)
	})
}

// A tag that is signed anew, for the commit that it had, is what counts from
// then on.
func TestVerifyTagSignedAgain(t *testing.T) {
	good, public := sshSigner(t, "ed25519")
	r := newRepo(t)
	r.change("one")
	r.git("tag", "v1.0.0")
	s := serve(t, r)
	for place, c := range map[string]Config{"remote": s.config(Config{}), "local": {URL: r.dir}} {
		r.as(good, "tag", "-f", "-s", "-m", "first", "v1.0.0")
		c.Ref, c.Verify = Ref{Tag: "v1.0.0"}, Verify{Object: "tag", AllowedSignersFile: textFile(t, "x "+public)}
		repository := open(t, c)
		fetchFrom(t, repository)
		r.as(good, "tag", "-f", "-s", "-m", "second", "v1.0.0")
		if _, err := repository.Fetch(t.Context()); err != nil {
			t.Errorf("%s: %v", place, err)
		}
		r.git("tag", "-f", "-a", "-m", "unsigned", "v1.0.0")
		if _, err := repository.Fetch(t.Context()); !errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), "it is not signed") {
			t.Errorf("%s: want that it is not signed, got %v", place, err)
		}
	}
}

// Whoever is trusted no longer is not served for the last good one either, by
// the process that trusted them.
func TestVerifyLastByWhoIsTrustedNow(t *testing.T) {
	good, public := sshSigner(t, "ed25519")
	_, other := sshSigner(t, "ed25519")
	r := newRepo(t)
	r.signedChange(good, "one")
	s := serve(t, r)
	signers := textFile(t, "x "+public)
	verify := Verify{Object: "commit", AllowedSignersFile: signers}
	for place, c := range map[string]Config{"remote": s.config(Config{Verify: verify}), "local": {URL: r.dir, Cache: t.TempDir(), Verify: verify}} {
		writeFile(t, signers, "x "+public)
		repository := open(t, c)
		fetchFrom(t, repository)
		writeFile(t, signers, "x "+other)
		if _, err := repository.Fetch(t.Context()); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: Fetch: want ErrSignature, got %v", place, err)
		}
		if _, err := repository.Last(t.Context()); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: Last: want ErrSignature, got %v", place, err)
		}
	}
}

// A fetch that is refused leaves nothing open, however often.
func TestRefusedFetchesLeaveNothingOpen(t *testing.T) {
	_, public := sshSigner(t, "ed25519")
	r := newRepo(t)
	r.change("one")
	r.git("gc", "-q")
	s := serve(t, r)
	verify := Verify{Object: "commit", AllowedSignersFile: textFile(t, "x "+public)}
	for place, c := range map[string]Config{"remote": s.config(Config{Verify: verify}), "local": {URL: r.dir, Verify: verify}} {
		repository := open(t, c)
		packs := func() (n int) {
			files, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Skip("no /proc")
			}
			for _, f := range files {
				if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasSuffix(to, ".pack") {
					n++
				}
			}
			return n
		}
		before := packs()
		for range 5 {
			if _, err := repository.Fetch(t.Context()); !errors.Is(err, ErrSignature) {
				t.Fatalf("%s: want ErrSignature, got %v", place, err)
			}
		}
		if after := packs(); after > before {
			t.Errorf("%s: %d packs are open, %d were", place, after, before)
		}
	}
}
