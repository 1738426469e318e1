#!/bin/sh
# Builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl
# and kwok into the user's cache directory and prints the folder. The first run takes 16
# to 25 minutes on two cores; with the folder there it is instant. The folder's
# name is made of go.sum and main.go, and kubetest computes the same one.
set -eu

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
	echo "$KUBEBUILDER_ASSETS"
	exit 0
fi

cd "$(dirname "$0")"
version=v1.37.2
key=$(cat go.sum main.go | sha256sum | cut -c1-12)
root=${XDG_CACHE_HOME:-$HOME/.cache}/rollcall/kube
folder=$root/$version-$key

if [ ! -d "$folder" ]; then
	mkdir -p "$root"
	building=$(mktemp -d "$root/.building-XXXXXX")
	trap 'rm -rf "$building"' EXIT
	trap 'exit 1' HUP INT TERM
	echo "building the control plane $version for tests, once per machine (about 20 minutes on two cores)" >&2

	flags="-s -w -X k8s.io/component-base/version.gitVersion=$version"
	go build -buildvcs=false -ldflags "$flags" -o "$building/kube" .
	go build -buildvcs=false -ldflags "-s -w" -o "$building/kwok" sigs.k8s.io/kwok/cmd/kwok
	for name in etcd kube-apiserver kube-controller-manager kube-scheduler kubectl; do
		ln -s kube "$building/$name"
	done

	# kwok's Stage resource and its fast stages, so that tests need no module source.
	kwok=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize
	mkdir "$building/stages"
	install -m 644 "$kwok/crd/bases/kwok.x-k8s.io_stages.yaml" "$building/stage-crd.yaml"
	for file in "$kwok"/stage/node/fast/*.yaml "$kwok"/stage/node/heartbeat-with-lease/*.yaml "$kwok"/stage/pod/fast/*.yaml; do
		case $file in
		*/kustomization.yaml) ;;
		*) install -m 644 "$file" "$building/stages/" ;;
		esac
	done

	chmod 755 "$building"
	mv -T "$building" "$folder" 2>/dev/null || [ -d "$folder" ] # another run may have been faster
fi
echo "$folder"
