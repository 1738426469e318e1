package gitrepo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// maxSecret is the largest token, password, key or certificate file that is
// read.
const maxSecret = 1 << 20

// Auth is how to log in. The zero Auth is anonymous. The files are read at
// every fetch, so that a rotated secret is taken up.
type Auth struct {
	TokenFile    string // bearer token
	Username     string // basic, with PasswordFile
	PasswordFile string

	CAFile            string // PEM: what signs the server's certificate, in place of the system's
	CertFile, KeyFile string // PEM: client certificate

	SSH       SSH
	GitHubApp GitHubApp
}

// SSH is a login by key, from KeyFile or from the agent at SSH_AUTH_SOCK. A
// server that KnownHostsFile does not know is never talked to.
type SSH struct {
	KeyFile        string
	PassphraseFile string
	Agent          bool
	KnownHostsFile string
}

// GitHubApp is a login as an installed GitHub App.
type GitHubApp struct {
	AppID, InstallationID int64
	KeyFile               string // the app's private key in PEM
	APIURL                string // empty: that of the host of the repository's URL
}

func (a Auth) validate(at location) error {
	ssh := a.SSH != SSH{}
	web := a
	web.SSH = SSH{}
	switch {
	case at.isSSH() && web != Auth{}:
		return errors.New("opening a repository: an ssh URL takes an ssh key and nothing else")
	case at.isSSH():
		return a.SSH.validate()
	case ssh:
		return fmt.Errorf("opening repository %q: the ssh key is for ssh URLs", at.shown)
	case web == Auth{}:
		return nil
	case at.isLocal():
		return fmt.Errorf("opening repository %q: auth is for https, http and ssh only", at.shown)
	}
	return a.validateWeb(at)
}

func (a Auth) validateWeb(at location) error {
	basic := a.Username != "" || a.PasswordFile != ""
	app := a.GitHubApp != GitHubApp{}
	switch {
	case a.TokenFile != "" && basic:
		return errors.New("opening a repository: auth has both a token and a username or password")
	case app && (a.TokenFile != "" || basic):
		return errors.New("opening a repository: auth has both a GitHub App and a token or password")
	case basic && a.Username == "":
		return errors.New("opening a repository: auth has a password but no username")
	case basic && a.PasswordFile == "":
		return errors.New("opening a repository: auth has a username but no password")
	case strings.ContainsFunc(a.Username, isControl) || strings.Contains(a.Username, ":"):
		return errors.New("opening a repository: auth's username has a colon or a control character in it")
	case (a.CertFile == "") != (a.KeyFile == ""):
		return errors.New("opening a repository: a client certificate needs a certificate and a key")
	case at.remote.Scheme != "https" && (a.CAFile != "" || a.CertFile != "" || app):
		return fmt.Errorf("opening repository %q: certificates and GitHub Apps are for https URLs", at.shown)
	case app && (a.GitHubApp.AppID <= 0 || a.GitHubApp.InstallationID <= 0 || a.GitHubApp.KeyFile == ""):
		return errors.New("opening a repository: a GitHub App needs its number, that of its installation and its private key")
	}
	return nil
}

func (s SSH) validate() error {
	switch {
	case s.KnownHostsFile == "":
		return errors.New("opening a repository: an ssh URL needs a known_hosts file: without it any server could pass for this one")
	case s.Agent == (s.KeyFile != ""):
		return errors.New("opening a repository: an ssh URL needs either a key file or the agent")
	}
	return nil
}

// identity tells apart who asks, so that one login is never served what was
// cached for another. It names the files and not what is in them: a rotated
// secret keeps the cache.
func (a Auth) identity() []string {
	return []string{
		a.TokenFile, a.Username, a.PasswordFile, a.CertFile, a.SSH.KeyFile, strconv.FormatBool(a.SSH.Agent),
		a.GitHubApp.KeyFile, strconv.FormatInt(a.GitHubApp.AppID, 10), strconv.FormatInt(a.GitHubApp.InstallationID, 10),
	}
}

// credentials are what was read from the files, and every form of it that must
// not be printed. A nil method is anonymous.
type credentials struct {
	method  transport.AuthMethod
	secrets []string
}

// credentials reads what an HTTP server is shown. A GitHub App's token is asked
// for, unless an earlier one still holds.
func (r *Repository) credentials(ctx context.Context) (credentials, error) {
	a := r.auth
	switch {
	case a.TokenFile != "":
		token, err := readSecret(a.TokenFile)
		if err != nil {
			return credentials{}, fmt.Errorf("reading the token: %w", err)
		}
		return credentials{method: &http.TokenAuth{Token: token}, secrets: []string{token}}, nil
	case a.PasswordFile != "":
		password, err := readSecret(a.PasswordFile)
		if err != nil {
			return credentials{}, fmt.Errorf("reading the password: %w", err)
		}
		return basic(a.Username, password), nil
	case a.GitHubApp.AppID != 0:
		token, err := r.appToken(ctx)
		if err != nil {
			return credentials{}, fmt.Errorf("logging in as GitHub App %d: %w", a.GitHubApp.AppID, err)
		}
		return basic("x-access-token", token), nil
	}
	return credentials{}, nil
}

func basic(user, password string) credentials {
	coded := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return credentials{method: &http.BasicAuth{Username: user, Password: password}, secrets: []string{coded, password}}
}

// tls is the client's side of TLS: whom it trusts and what it shows. Nil is
// the system's.
func (a Auth) tls() (*tls.Config, error) {
	if a.CAFile == "" && a.CertFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CAFile != "" {
		pem, err := readFile(a.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the CA: file %q has no certificate in PEM", a.CAFile)
		}
	}
	if a.CertFile != "" {
		cert, err := readFile(a.CertFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		key, err := readFile(a.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate's key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate %q with key %q: %w", a.CertFile, a.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// readSecret reads a file of one line. No error has any of it.
func readSecret(path string) (string, error) {
	content, err := readFile(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(content), "\r\n")
	switch {
	case secret == "":
		return "", fmt.Errorf("file %q is empty", path)
	case strings.ContainsFunc(secret, isControl):
		return "", fmt.Errorf("file %q has more than one line, or control characters", path)
	}
	return secret, nil
}

// readFile reads a small file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxSecret {
		return nil, fmt.Errorf("file %q has more than %d bytes", path, maxSecret)
	}
	return content, nil
}

// scrub takes the secrets out of a text that a server may have had a part in.
func (c credentials) scrub(text string) string {
	for _, s := range slices.Compact(slices.Sorted(slices.Values(c.secrets))) {
		text = strings.ReplaceAll(text, s, "[hidden]")
	}
	return text
}
