package gitrepo

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

const (
	// appLife is how long the proof of being the app holds; GitHub takes ten
	// minutes at most. appSkew is how far its clock may be behind ours.
	appLife = 5 * time.Minute
	appSkew = time.Minute

	// renewal is how long before its end a token is asked for anew.
	renewal = 5 * time.Minute

	maxAnswer = 1 << 20
)

// appToken returns a token of the app's installation that may read this one
// repository and nothing else. It is kept in memory until it nearly ends.
// See GitHub's "Authenticating as a GitHub App installation".
func (r *Repository) appToken(ctx context.Context) (string, error) {
	r.mu.Lock()
	token, until := r.token, r.tokenEnds
	r.mu.Unlock()
	if token != "" && time.Until(until) > renewal {
		return token, nil
	}
	token, until, err := r.askAppToken(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	r.token, r.tokenEnds = token, until
	r.mu.Unlock()
	return token, nil
}

// forgetToken makes the next fetch ask for another one.
func (r *Repository) forgetToken() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = ""
}

func (r *Repository) askAppToken(ctx context.Context) (token string, until time.Time, err error) {
	proof, err := r.auth.GitHubApp.proof(time.Now())
	if err != nil {
		return "", time.Time{}, err
	}
	body, err := json.Marshal(map[string]any{
		"repositories": []string{strings.TrimSuffix(path.Base(r.at.remote.Path), ".git")},
		"permissions":  map[string]string{"contents": "read"},
	})
	if err != nil {
		return "", time.Time{}, err
	}
	client, closeIdle, err := r.httpClient()
	if err != nil {
		return "", time.Time{}, err
	}
	defer closeIdle()
	client.Transport = client.Transport.(guard).next // GitHub's API does not speak Git
	address := fmt.Sprintf("%s/app/installations/%d/access_tokens", r.auth.GitHubApp.api(r.at.remote), r.auth.GitHubApp.InstallationID)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return "", time.Time{}, errors.New("the address of GitHub's API is no URL")
	}
	req.Header.Set("Authorization", "Bearer "+proof)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("User-Agent", "rollcall")
	res, err := client.Do(req)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%w: %w", ErrUnreachable, bare(err))
	}
	defer res.Body.Close()
	return tokenOf(res, credentials{secrets: []string{proof}})
}

// tokenOf reads GitHub's answer. What it says of a refusal is quoted; a token
// never is, nor what it was asked with.
func tokenOf(res *http.Response, asked credentials) (token string, until time.Time, err error) {
	content, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%w: reading the answer: %w", ErrUnreachable, err)
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
		Message   string    `json:"message"`
	}
	decoded := json.Unmarshal(content, &answer)
	switch {
	case res.StatusCode == http.StatusCreated && decoded == nil && answer.Token != "":
		return answer.Token, answer.ExpiresAt, nil
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden, res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusUnprocessableEntity:
		said := asked.scrub(cmp.Or(answer.Message, http.StatusText(res.StatusCode)))
		return "", time.Time{}, fmt.Errorf("%w: %w: %q: check appID, installationID and keyFile, and that the app is installed on this repository with read access to its contents", ErrUnauthorized, statusError(res.StatusCode), said[:min(len(said), maxSaid)])
	}
	return "", time.Time{}, fmt.Errorf("asking for a token: %w", statusError(res.StatusCode))
}

// api is where GitHub answers: of GitHub Enterprise Server it is a path.
func (g GitHubApp) api(repository *url.URL) string {
	if g.APIURL != "" {
		return strings.TrimSuffix(g.APIURL, "/")
	}
	if repository.Host == "github.com" {
		return "https://api.github.com"
	}
	return "https://" + repository.Host + "/api/v3"
}

// proof is a JSON Web Token (RFC 7519) signed with the app's key by RS256.
func (g GitHubApp) proof(now time.Time) (string, error) {
	content, err := readFile(g.KeyFile)
	if err != nil {
		return "", fmt.Errorf("reading the private key: %w", err)
	}
	key, err := rsaKey(content)
	if err != nil {
		return "", fmt.Errorf("reading the private key in %q: %w", g.KeyFile, err)
	}
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d,"iss":"%d"}`, now.Add(-appSkew).Unix(), now.Add(appLife).Unix(), g.AppID)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("signing with the private key: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// rsaKey reads PKCS #1, which GitHub hands out, or PKCS #8.
func rsaKey(content []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it is no unencrypted RSA key")
	}
	if key, ok := key.(*rsa.PrivateKey); ok {
		return key, nil
	}
	return nil, errors.New("it is no RSA key")
}
