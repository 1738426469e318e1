package gitrepo

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// maxSecret is the largest token or password file that is read.
const maxSecret = 64 << 10

func (a Auth) validate(at location) error {
	switch {
	case a == Auth{}:
		return nil
	case at.isLocal():
		return fmt.Errorf("opening repository %q: auth is for https and http only", at.shown)
	case a.TokenFile != "" && (a.Username != "" || a.PasswordFile != ""):
		return errors.New("opening a repository: auth has both a token and a username or password")
	case a.TokenFile == "" && a.Username == "":
		return errors.New("opening a repository: auth has a password but no username")
	case a.TokenFile == "" && a.PasswordFile == "":
		return errors.New("opening a repository: auth has a username but no password")
	case strings.ContainsFunc(a.Username, isControl) || strings.Contains(a.Username, ":"):
		return errors.New("opening a repository: auth's username has a colon or a control character in it")
	}
	return nil
}

// identity tells apart who asks, so that one login is never served what was
// cached for another. It names the files and not what is in them: a rotated
// secret keeps the cache.
func (a Auth) identity() []string { return []string{a.TokenFile, a.Username, a.PasswordFile} }

// credentials are what was read from the files, and every form of it that must
// not be printed. A nil method is anonymous.
type credentials struct {
	method  transport.AuthMethod
	secrets []string
}

func (a Auth) read() (credentials, error) {
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
		basic := base64.StdEncoding.EncodeToString([]byte(a.Username + ":" + password))
		method := &http.BasicAuth{Username: a.Username, Password: password}
		return credentials{method: method, secrets: []string{basic, password}}, nil
	}
	return credentials{}, nil
}

// readSecret reads a file of one line. No error has any of it.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(content), "\r\n")
	switch {
	case len(content) > maxSecret:
		return "", fmt.Errorf("file %q has more than %d bytes", path, maxSecret)
	case secret == "":
		return "", fmt.Errorf("file %q is empty", path)
	case strings.ContainsFunc(secret, isControl):
		return "", fmt.Errorf("file %q has more than one line, or control characters", path)
	}
	return secret, nil
}

// scrub takes the secrets out of a text that a server may have had a part in.
func (c credentials) scrub(text string) string {
	for _, s := range c.secrets {
		text = strings.ReplaceAll(text, s, "[hidden]")
	}
	return text
}
