package clusters

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// schemes are the forms of a Git URL.
var schemes = []string{"", "file", "http", "https", "ssh"}

func (d *document) source(at *field.Path, w *wireSource) *Source {
	if w == nil {
		return nil
	}
	s := &Source{
		URL:      w.URL,
		Ref:      d.ref(at.Child("ref"), w.Ref),
		Path:     d.folder(at.Child("path"), or(w.Path, ".")),
		TimeZone: or(w.TimeZone, "UTC"),
	}
	s.Poll = d.cron(at.Child("poll"), or(w.Poll, "@every 1m"), at.Child("timeZone"), s.TimeZone)
	detail, ok := usableURL(w.URL)
	if !ok {
		d.add(field.Invalid(at.Child("url"), field.OmitValueType{}, detail))
	}
	s.Auth = d.auth(at.Child("auth"), w.Auth)
	if ok {
		d.authFits(at.Child("auth"), transportOf(w.URL), s.Auth)
	}
	s.Verify = d.verify(at.Child("verify"), w.Verify, s.Ref)
	return s
}

// usableURL tells what is wrong with a Git URL without repeating it, for it may
// hold a credential.
func usableURL(raw string) (detail string, ok bool) {
	if raw == "" {
		return "must be the URL or path of a Git repository", false
	}
	if strings.HasPrefix(raw, "-") || strings.Contains(raw, "::") || strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "must not start with -, name a remote helper (::) or hold control characters", false
	}
	const login = "must not hold a credential: name a file that holds it in auth.tokenFile or auth.passwordFile"
	before, _, hasUser := strings.Cut(raw, "@")
	if !strings.Contains(raw, "://") {
		if hasUser && strings.Contains(before, ":") {
			return login, false
		}
		return "", true
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "must be a URL", false
	}
	_, hasPassword := u.User.Password()
	web := u.Scheme == "http" || u.Scheme == "https"
	switch {
	case !slices.Contains(schemes, u.Scheme):
		return "must be https, http, ssh, file or a path", false
	case hasPassword, web && u.User != nil, web && (u.RawQuery != "" || u.Fragment != ""):
		return login, false
	case u.Scheme != "file" && u.Host == "":
		return "must name a host", false
	}
	return "", true
}

// transportOf is how a Git URL is reached: http, https, ssh or file.
func transportOf(raw string) string {
	if scheme, _, ok := strings.Cut(raw, "://"); ok {
		return scheme
	}
	if before, _, ok := strings.Cut(raw, ":"); ok && !strings.Contains(before, "/") {
		return "ssh" // user@host:path, as Git reads it
	}
	return "file"
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// ref takes one of branch, tag, semver, name and commit; a commit may have its
// branch beside it, for servers that give no commit by its hash.
func (d *document) ref(at *field.Path, w wireRef) Ref {
	set := 0
	for _, s := range []string{w.Branch, w.Tag, w.Semver, w.Name, w.Commit} {
		if s != "" {
			set++
		}
	}
	if set > 1 && (set != 2 || w.Branch == "" || w.Commit == "") {
		d.add(field.Forbidden(at, "at most one of branch, tag, semver, name and commit; only a commit may have its branch beside it"))
	}
	if w.Commit != "" && !commitID.MatchString(w.Commit) {
		d.add(field.Invalid(at.Child("commit"), w.Commit, "must be 40 lower-case hexadecimal digits"))
	}
	d.refName(at.Child("branch"), w.Branch)
	d.refName(at.Child("tag"), w.Tag)
	if w.Name != "" && (!strings.HasPrefix(w.Name, "refs/") || badRef.MatchString(w.Name)) {
		d.add(field.Invalid(at.Child("name"), w.Name, "must be a full name such as refs/heads/main or refs/pull/12/head"))
	}
	if w.Semver != "" {
		if _, err := semver.NewConstraint(w.Semver); err != nil {
			d.add(field.Invalid(at.Child("semver"), w.Semver, `must be a range of versions such as ">=1.2.0 <2.0.0", "~1.4" or "1.x"`))
		}
	}
	return Ref(w)
}

var badRef = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$|\.lock$`)

func (d *document) refName(at *field.Path, name string) {
	switch {
	case strings.HasPrefix(name, "refs/"):
		d.add(field.Invalid(at, name, "must be the short name, without refs/heads/ or refs/tags/; a full name goes into ref.name"))
	case badRef.MatchString(name):
		d.add(field.Invalid(at, name, "must be a name that Git accepts"))
	}
}

func (d *document) auth(at *field.Path, w wireAuth) Auth {
	a := Auth{
		TokenFile: w.TokenFile, Username: w.Username, PasswordFile: w.PasswordFile,
		CAFile: w.CAFile, CertFile: w.CertFile, KeyFile: w.KeyFile,
	}
	if w.SSH != nil {
		ssh := SSH(*w.SSH)
		a.SSH = &ssh
		d.ssh(at.Child("ssh"), ssh)
	}
	if w.GitHubApp != nil {
		app := GitHubApp(*w.GitHubApp)
		a.GitHubApp = &app
		d.githubApp(at.Child("githubApp"), app)
	}
	switch {
	case w.TokenFile != "" && (w.Username != "" || w.PasswordFile != ""):
		d.add(field.Forbidden(at, "either tokenFile, or username and passwordFile"))
	case w.Username != "" && w.PasswordFile == "":
		d.add(field.Required(at.Child("passwordFile"), "username needs it"))
	case w.Username == "" && w.PasswordFile != "":
		d.add(field.Required(at.Child("username"), "passwordFile needs it"))
	case a.GitHubApp != nil && w.TokenFile+w.Username != "":
		d.add(field.Forbidden(at, "either githubApp, or a token or password"))
	}
	if (w.CertFile == "") != (w.KeyFile == "") {
		d.add(field.Forbidden(at, "a client certificate needs both certFile and keyFile"))
	}
	return a
}

func (d *document) ssh(at *field.Path, s SSH) {
	if s.KnownHostsFile == "" {
		d.add(field.Required(at.Child("knownHostsFile"), "without it any server could pass for this one; make it with ssh-keyscan HOST and compare the fingerprint with the one that the server's operator publishes"))
	}
	switch {
	case s.Agent && s.KeyFile != "":
		d.add(field.Forbidden(at, "either keyFile or agent"))
	case !s.Agent && s.KeyFile == "":
		d.add(field.Required(at.Child("keyFile"), "or agent: true"))
	case s.KeyFile == "" && s.PassphraseFile != "":
		d.add(field.Required(at.Child("keyFile"), "passphraseFile needs it"))
	}
}

func (d *document) githubApp(at *field.Path, g GitHubApp) {
	if g.AppID <= 0 {
		d.add(field.Required(at.Child("appID"), "the number that GitHub shows on the app's page"))
	}
	if g.InstallationID <= 0 {
		d.add(field.Required(at.Child("installationID"), "the number at the end of the installation's address"))
	}
	if g.KeyFile == "" {
		d.add(field.Required(at.Child("keyFile"), "the app's private key, in PEM"))
	}
	if g.APIURL != "" && !strings.HasPrefix(g.APIURL, "https://") {
		d.add(field.Invalid(at.Child("apiURL"), field.OmitValueType{}, "must begin with https://"))
	}
}

// authFits refuses a login that the way to the server does not know.
func (d *document) authFits(at *field.Path, transport string, a Auth) {
	web := a.TokenFile+a.Username+a.PasswordFile+a.CAFile+a.CertFile+a.KeyFile != "" || a.GitHubApp != nil
	switch {
	case transport == "ssh" && web:
		d.add(field.Forbidden(at, "an ssh URL takes ssh: {keyFile, knownHostsFile} and nothing else"))
	case transport == "ssh" && a.SSH == nil:
		d.add(field.Required(at.Child("ssh"), "an ssh URL needs ssh: {keyFile: FILE, knownHostsFile: FILE}, or agent: true in place of the key"))
	case transport != "ssh" && a.SSH != nil:
		d.add(field.Forbidden(at.Child("ssh"), "the URL is not an ssh one"))
	case transport == "file" && web:
		d.add(field.Forbidden(at, "a local repository needs no login"))
	case transport == "http" && a.CAFile+a.CertFile != "":
		d.add(field.Forbidden(at, "certificates are for https URLs"))
	}
}

func (d *document) verify(at *field.Path, w *wireVerify, ref Ref) *Verify {
	if w == nil {
		return nil
	}
	v := Verify(*w)
	if v.Object == "" {
		v.Object = "commit"
	}
	switch v.Object {
	case "commit":
	case "tag":
		if ref.Tag == "" && ref.Semver == "" && !strings.HasPrefix(ref.Name, "refs/tags/") {
			d.add(field.Invalid(at.Child("object"), v.Object, "needs a ref that is a tag or a semver range"))
		}
	default:
		d.add(field.NotSupported(at.Child("object"), v.Object, []string{"commit", "tag"}))
	}
	if v.AllowedSignersFile == "" && v.OpenPGPKeysFile == "" {
		d.add(field.Required(at, "name allowedSignersFile (SSH signatures, as git config gpg.ssh.allowedSignersFile) or openPGPKeysFile (armored public keys), or both"))
	}
	return &v
}
