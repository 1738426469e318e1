package kubetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// kubernetesVersion is what kube/build.sh builds.
const kubernetesVersion = "v1.37.2"

// Assets is the folder of the control plane's binaries: $KUBEBUILDER_ASSETS, or
// the folder in the user's cache that kube/build.sh makes.
func Assets() (string, error) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		var err error
		if folder, err = cacheFolder(); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("looking for the control plane's binaries: no %q in %q: run make kube (20 minutes, once), or point KUBEBUILDER_ASSETS at a folder that holds them", name, folder)
		}
	}
	return folder, nil
}

// cacheFolder computes the name that kube/build.sh computes.
func cacheFolder() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	hash := sha256.New()
	for _, name := range []string{"go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(here), "kube", name))
		if err != nil {
			return "", fmt.Errorf("naming the folder of the control plane's binaries: %w", err)
		}
		hash.Write(data)
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("naming the folder of the control plane's binaries: %w", err)
		}
		cache = filepath.Join(home, ".cache")
	}
	key := hex.EncodeToString(hash.Sum(nil))[:12]
	return filepath.Join(cache, "rollcall", "kube", kubernetesVersion+"-"+key), nil
}
