package gitrepo

import (
	"errors"
	"testing"
)

func TestSemver(t *testing.T) {
	r := newRepo(t)
	for _, v := range []string{"v1.2.0", "v1.10.1", "2.0.0", "v2.1.0-rc.1", "nightly", "v1.10.1+build", "v3"} {
		r.change(v)
		r.git("tag", "-a", "-m", "x", v)
		if v == "v1.10.1" {
			r.git("tag", "1.10.1") // the same version of the same commit
		}
	}
	r.git("tag", "-d", "v1.10.1+build")
	r.git("update-ref", "refs/pull/12/head", r.git("rev-parse", "2.0.0^{commit}"))
	s := serve(t, r)
	for _, tc := range []struct{ ref, want string }{
		{">=1.0.0 <2.0.0", "v1.10.1"}, {"1.2.x", "v1.2.0"}, {"^2", "2.0.0"}, {"*", "v3"}, {">=2.1.0-0 <3", "v2.1.0-rc.1"}, {"~2.1.0-0", "v2.1.0-rc.1"},
	} {
		for place, c := range map[string]Config{"remote": s.config(Config{}), "local": local(Config{}, r.dir)} {
			c.Ref.Semver = tc.ref
			a := fetch(t, c)
			if got := content(t, a.Files, "v.txt"); got != tc.want {
				t.Errorf("%s: %s leads to %s, which is tag %s; want %s", place, tc.ref, got, a.Revision.Ref, tc.want)
			}
		}
	}
	for place, c := range map[string]Config{"remote": s.config(Config{}), "local": local(Config{}, r.dir)} {
		c.Ref.Name = "refs/pull/12/head"
		if got := content(t, fetch(t, c).Files, "v.txt"); got != "2.0.0" {
			t.Errorf("%s: the full ref leads to %s", place, got)
		}
		c.Ref.Name = "refs/pull/13/head"
		if err := fetchError(t, c); !errors.Is(err, ErrRefNotFound) {
			t.Errorf("%s: want ErrRefNotFound, got %v", place, err)
		}
		c.Ref = Ref{Semver: ">=4"}
		err := fetchError(t, c)
		if !errors.Is(err, ErrRefNotFound) {
			t.Errorf("%s: want ErrRefNotFound, got %v", place, err)
		}
		wantText(t, err, "none of its versions is in the range")
	}
	r.git("tag", "v1.2")
	wantText(t, fetchError(t, s.config(Config{Ref: Ref{Semver: "~1.2"}})), `"v1.2" and "v1.2.0" are the same version`)
}
