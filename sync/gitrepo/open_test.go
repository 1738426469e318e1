package gitrepo

import (
	"strings"
	"testing"
)

func TestOpenRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		config Config
		want   string
	}{
		"NoURL":         {"nothing can be followed", Config{}, "no URL is given"},
		"SSHNoHosts":    {"any server could pass for it", Config{URL: "ssh://git@host/r", Cache: "c"}, "needs a known_hosts file"},
		"SSHNoKey":      {"nothing is guessed", Config{URL: "git@host:r", Cache: "c", Auth: Auth{SSH: SSH{KnownHostsFile: "h"}}}, "a key file or the agent"},
		"SSHToken":      {"ssh knows no token", Config{URL: "git@host:r", Cache: "c", Auth: Auth{TokenFile: "t", SSH: SSH{KnownHostsFile: "h", Agent: true}}}, "an ssh key and nothing else"},
		"SSHPassword":   {"never in a URL", Config{URL: "ssh://git:" + secret + "@host/r"}, "credentials in it"},
		"SCPPassword":   {"never in a URL", Config{URL: "git:" + secret + "@host:r.git"}, "credentials in it"},
		"SSHNoPath":     {"no repository", Config{URL: "ssh://git@host/"}, "the path is missing"},
		"SSHDashHost":   {"no option of anything", Config{URL: "ssh://-oProxyCommand=x/r"}, "dash"},
		"SSHDashUser":   {"no option of anything", Config{URL: "ssh://-l@host/r"}, "dash"},
		"SCPDashPath":   {"no option of git-upload-pack", Config{URL: "git@host:--upload-pack=x"}, "dash"},
		"KeyForWeb":     {"https knows no ssh key", Config{URL: "https://host/r", Cache: "c", Auth: Auth{SSH: SSH{KnownHostsFile: "h", Agent: true}}}, "for ssh URLs"},
		"HalfCert":      {"both or none", Config{URL: "https://host/r", Cache: "c", Auth: Auth{CertFile: "c"}}, "needs a certificate and a key"},
		"CAForHTTP":     {"nothing to check", Config{URL: "http://host/r", Cache: "c", Auth: Auth{CAFile: "c"}}, "https URLs"},
		"AppAndToken":   {"which one would count?", Config{URL: "https://host/r", Cache: "c", Auth: Auth{TokenFile: "t", GitHubApp: GitHubApp{1, 2, "k", ""}}}, "a GitHub App and a token"},
		"HalfApp":       {"all three", Config{URL: "https://host/r", Cache: "c", Auth: Auth{GitHubApp: GitHubApp{AppID: 1}}}, "needs its number"},
		"VerifyWhat":    {"commit and tag can be signed", Config{URL: "/r", Verify: Verify{Object: "tree", OpenPGPKeysFile: "k"}}, `a "tree" cannot`},
		"VerifyNoTag":   {"a branch has no signature", Config{URL: "/r", Verify: Verify{Object: "tag", OpenPGPKeysFile: "k"}}, "HEAD is none"},
		"VerifyNobody":  {"whom to trust?", Config{URL: "/r", Verify: Verify{Object: "commit"}}, "nobody's is trusted"},
		"BadSemver":     {"no range", Config{URL: "/r", Ref: Ref{Semver: "newest"}}, "no range of versions"},
		"ShortRefName":  {"names are full here", Config{URL: "/r", Ref: Ref{Name: "main"}}, "must be a full name"},
		"GitProtocol":   {"it authenticates nobody", Config{URL: "git://host/r"}, "neither encrypts nor knows who answers"},
		"OtherScheme":   {"no helper is ever run", Config{URL: "ext::sh -c x://y"}, "are not supported"},
		"Password":      {"it would be printed and stored", Config{URL: "https://u:" + secret + "@host/r"}, "credentials in it"},
		"UserOnly":      {"a token may stand there", Config{URL: "https://" + secret + "@host/r"}, "credentials in it"},
		"BadURL":        {"url.Parse prints it", Config{URL: "https://u:" + secret + "@host:bad/r"}, "cannot be parsed"},
		"Query":         {"tokens are put there", Config{URL: "https://host/r?private_token=" + secret}, "no query"},
		"Fragment":      {"it means nothing", Config{URL: "https://host/r#" + secret}, "no query and no fragment"},
		"DashHost":      {"it would be an option", Config{URL: "https://-oProxyCommand=x/r"}, "dash"},
		"DashPath":      {"it would be an option", Config{URL: "--upload-pack=x"}, "dash"},
		"NoHost":        {"it is incomplete", Config{URL: "https:///r"}, "host is missing"},
		"Newline":       {"it would split a header", Config{URL: "https://host/r\nx"}, "control characters"},
		"FileHost":      {"two slashes make a host", Config{URL: "file://srv/git/r"}, "three slashes"},
		"NoCache":       {"a remote needs one", Config{URL: "https://host/r"}, "no cache folder"},
		"TwoRefs":       {"which one is meant is not known", Config{URL: "/r", Ref: Ref{Branch: "a", Tag: "b"}}, "at most one"},
		"ShortCommit":   {"it may become ambiguous", Config{URL: "/r", Ref: Ref{Commit: "abc123"}}, "40 hexadecimal digits"},
		"FullName":      {"names are short", Config{URL: "/r", Ref: Ref{Branch: "refs/heads/main"}}, "short name"},
		"BadName":       {"git refuses it too", Config{URL: "/r", Ref: Ref{Branch: "a..b"}}, "not a valid name"},
		"PathUp":        {"it leaves the repository", Config{URL: "/r", Path: "a/../../b"}, "inside the repository"},
		"PathAbsolute":  {"it is of this machine", Config{URL: "/r", Path: "/etc"}, "must be relative"},
		"LocalAuth":     {"it would be ignored", Config{URL: "/r", Auth: Auth{TokenFile: "t"}}, "for https, http and ssh only"},
		"TwoAuths":      {"which one is meant is not known", Config{URL: "https://h/r", Cache: "c", Auth: Auth{TokenFile: "t", Username: "u"}}, "both"},
		"NoPassword":    {"it is half a login", Config{URL: "https://h/r", Cache: "c", Auth: Auth{Username: "u"}}, "no password"},
		"NoUsername":    {"it is half a login", Config{URL: "https://h/r", Cache: "c", Auth: Auth{PasswordFile: "p"}}, "no username"},
		"ColonUsername": {"basic login cannot have it", Config{URL: "https://h/r", Cache: "c", Auth: Auth{Username: "u:" + secret, PasswordFile: "p"}}, "colon"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tc.config)
			if err == nil {
				t.Fatalf("%s: want an error", tc.reason)
			}
			wantText(t, err, tc.want)
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error has the secret in it: %v", err)
			}
		})
	}
}

func TestOpenAccepts(t *testing.T) {
	cases := map[string]struct {
		url, shown string
	}{
		"Trailing": {"https://Host.example:8443/a%20b/r.git//", "https://Host.example:8443/a%20b/r.git"},
		"Local":    {"/srv/git:odd/r", "/srv/git:odd/r"},
		"File":     {"file:///srv/r", "file:///srv/r"},
		"IPv6":     {"http://[::1]:80/r", "http://[::1]:80/r"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := Open(Config{URL: tc.url, Cache: "unused"})
			if err != nil {
				t.Fatal(err)
			}
			if r.at.shown != tc.shown {
				t.Errorf("got %q, want %q", r.at.shown, tc.shown)
			}
		})
	}
}

func TestEndpointKeepsThePathEscaped(t *testing.T) {
	for _, url := range []string{"https://host:8443/a%20b/r.git", "http://[::1]:8080/r"} {
		at, err := parseLocation(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := endpoint(at.remote).String(); got != url {
			t.Errorf("got %q, want %q", got, url)
		}
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"zzz", "develop", "main", "release-1", "release-2", "maim", "other"}
	got := suggest("mian", names, "branches")
	want := `the repository's branches are "main", "maim", "zzz", "other", "develop" and 2 more`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCacheKey(t *testing.T) {
	a, b := location{shown: "https://h/a"}, location{shown: "https://h/b"}
	keys := map[string]string{
		"base":   cacheKey(a, Auth{}, wanted{Ref: Ref{Branch: "x"}}),
		"url":    cacheKey(b, Auth{}, wanted{Ref: Ref{Branch: "x"}}),
		"tag":    cacheKey(a, Auth{}, wanted{Ref: Ref{Tag: "x"}}),
		"head":   cacheKey(a, Auth{}, wanted{}),
		"commit": cacheKey(a, Auth{}, wanted{Ref: Ref{Commit: "x"}}),
		"token":  cacheKey(a, Auth{TokenFile: "t"}, wanted{Ref: Ref{Branch: "x"}}),
		"login":  cacheKey(a, Auth{Username: "u", PasswordFile: "t"}, wanted{Ref: Ref{Branch: "x"}}),
	}
	seen := map[string]string{}
	for name, key := range keys {
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s share a cache", name, other)
		}
		seen[key] = name
	}
}
