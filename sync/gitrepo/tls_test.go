package gitrepo

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// secure serves what s serves by TLS, and wants a client certificate if ca is
// set. It returns the URL and the file of its own CA.
func secure(t *testing.T, s *server, ca *x509.CertPool) (address, file string) {
	t.Helper()
	backend, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	tlsServer := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.URL.Scheme, req.URL.Host, req.RequestURI, req.Host = backend.Scheme, backend.Host, "", backend.Host
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		for k, v := range res.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
	}))
	tlsServer.Config.ErrorLog = quiet()
	if ca != nil {
		tlsServer.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca}
	}
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	file = filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer.Certificate().Raw})))
	return tlsServer.URL + "/repo", file
}

// clientPair makes a certificate and key, signed by themselves.
func clientPair(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rollcall"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}

func TestTLS(t *testing.T) {
	s := serve(t, newRepoWith(t, "one"))
	cert, key, pool := clientPair(t)
	open, ca := secure(t, s, nil)
	closed, closedCA := secure(t, s, pool)
	config := func(url string, a Auth) Config { return Config{URL: url, Cache: s.cache, Auth: a} }
	fetch(t, config(open, Auth{CAFile: ca}))
	fetch(t, config(closed, Auth{CAFile: closedCA, CertFile: cert, KeyFile: key}))
	for name, tc := range map[string]struct {
		c    Config
		want string
	}{
		"SystemCA":      {config(open, Auth{}), "certificate"},
		"AnotherCA":     {config(open, Auth{CAFile: cert}), "certificate"},
		"NoCertificate": {config(closed, Auth{CAFile: closedCA}), "certificate"},
		"CAIsNoPEM":     {config(open, Auth{CAFile: secretFile(t, secret)}), "has no certificate in PEM"},
		"CAIsNotThere":  {config(open, Auth{CAFile: "/absent/ca.pem"}), "/absent/ca.pem"},
		"KeyOfAnother":  {config(closed, Auth{CAFile: closedCA, CertFile: ca, KeyFile: key}), "reading the client certificate"},
	} {
		t.Run(name, func(t *testing.T) { wantText(t, fetchError(t, tc.c), tc.want) })
	}
}

// github is a server that hands out tokens as GitHub does, to who shows that it
// has the app's key, and lets them read.
type github struct {
	*httptest.Server
	asked atomic.Int32
	body  atomic.Value
}

func startGitHub(t *testing.T, key *rsa.PublicKey, life time.Duration) *github {
	t.Helper()
	g := &github{}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		g.asked.Add(1)
		text, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		if why := notTheApp(text, key); why != "" || req.URL.Path != "/app/installations/7/access_tokens" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"message": %q}`, why)
			return
		}
		body, _ := io.ReadAll(req.Body)
		g.body.Store(string(body))
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"token": %q, "expires_at": %q}`, secret, time.Now().Add(life).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(g.Close)
	return g
}

func notTheApp(text string, key *rsa.PublicKey) string {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return "no JSON web token"
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) != nil {
		return "A JSON web token could not be decoded"
	}
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var c struct {
		Iat, Exp int64
		Iss      string
	}
	if json.Unmarshal(claims, &c) != nil || c.Iss != "5" || c.Iat > time.Now().Unix() || c.Exp-time.Now().Unix() > 600 {
		return "wrong claims"
	}
	return ""
}

func TestGitHubApp(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "app.pem")
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})))
	s := serve(t, newRepoWith(t, "one"))
	s.interfere(login("Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+secret))))
	address, ca := secure(t, s, nil)
	config := func(g *github, installation int64, keyFile string) Config {
		both := filepath.Join(t.TempDir(), "cas.pem")
		pemOf := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}))
		own, err := readFile(ca)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, both, string(own)+pemOf)
		return Config{URL: address, Cache: s.cache, Auth: Auth{CAFile: both, GitHubApp: GitHubApp{AppID: 5, InstallationID: installation, KeyFile: keyFile, APIURL: g.URL}}}
	}
	g := startGitHub(t, &private.PublicKey, time.Hour)
	repository := open(t, config(g, 7, key))
	fetchFrom(t, repository)
	fetchFrom(t, repository)
	if n := g.asked.Load(); n != 1 {
		t.Errorf("a token that holds for an hour was asked for %d times", n)
	}
	if got, want := g.body.Load(), `{"permissions":{"contents":"read"},"repositories":["repo"]}`; got != want {
		t.Errorf("asked for %s, want no more than %s", got, want)
	}
	short := startGitHub(t, &private.PublicKey, renewal/2)
	repository = open(t, config(short, 7, key))
	fetchFrom(t, repository)
	fetchFrom(t, repository)
	if n := short.asked.Load(); n != 2 {
		t.Errorf("a token that nearly ends was asked for %d times", n)
	}
	t.Run("AnotherInstallation", func(t *testing.T) {
		err := fetchError(t, config(g, 8, key))
		if !errors.Is(err, ErrUnauthorized) {
			t.Errorf("want ErrUnauthorized, got %v", err)
		}
		wantText(t, err, "GitHub App 5", "installationID")
	})
	t.Run("ServerRepeatsTheProof", func(t *testing.T) {
		echo := &github{}
		echo.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"message": %q}`, "bad "+req.Header.Get("Authorization"))
		}))
		t.Cleanup(echo.Close)
		err := fetchError(t, config(echo, 7, key))
		wantText(t, err, "bad Bearer [hidden]")
		if strings.Contains(err.Error(), "eyJ") {
			t.Errorf("the error has the proof in it: %v", err)
		}
	})
	t.Run("NoKey", func(t *testing.T) {
		wantText(t, fetchError(t, config(g, 7, secretFile(t, secret))), "it is not PEM")
	})
	t.Run("AnotherKey", func(t *testing.T) {
		_, other, _ := clientPair(t)
		wantText(t, fetchError(t, config(g, 7, other)), "it is no RSA key")
	})
}
