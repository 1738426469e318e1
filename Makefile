# rollcall. `make` lists what there is to do.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
KUBE := clusters/kubetest/kube
BENCH := clusters/kubetest/bench
FUZZTIME ?= 30s
FUZZ := ./clusters:FuzzParseFleet ./clusters/hub:FuzzSecretKubeconfig ./clusters:FuzzParseExcuse ./clusters/recorded:FuzzRead ./render:FuzzScan ./render/validate:FuzzObjects ./render/build:FuzzDelivery ./sync/gitrepo:FuzzSplitCommit ./sync/gitrepo:FuzzParseSigners ./controller/coverage:FuzzCompute
B ?= coverage
D ?= 10m

.PHONY: help build demo test check bench fuzz prove peers agents kube golden needs

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## compile bin/rollcall
	go build -o bin/ ./cmd/rollcall

demo: build ## judge the recorded fleet of examples/ and print its report
	@bash examples/demo.sh bin/rollcall bin/demo

test: needs kube ## race tests, real control planes included
	go test -race -shuffle=on -timeout 40m ./...

check: ## format, vet, lint, layout, tidy
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); test -z "$$files" || { echo "not formatted (gofmt -w):" $$files; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	go test -count=1 -run 'TestLayout' ./cmd/rollcall
	go mod tidy -diff

bench: ## compare with the peers in one run: make bench B=coverage or B=render
ifeq ($(B),coverage)
	cd $(BENCH) && go test -run '^$$' -bench '(?i)^Benchmark$(B)' -benchtime 20x . | grep -E "ratio|^ok|FAIL"
else
	go test -run '^$$' -bench '(?i)^Benchmark$(B)' -benchtime 5x ./render/build | grep -E "ratio|^ok|FAIL"
endif

fuzz: ## fuzz each target for FUZZTIME
	@for t in $(FUZZ); do echo "$$t"; go test -run '^$$' -fuzz "^$${t#*:}$$" -fuzztime $(FUZZTIME) "$${t%:*}"; done

prove: kube ## the long proofs: a repository of 200,000 files, 300 killed applies, and a restless cluster for D
	ROLLCALL_FILES=200000 go test -count=1 -v -run '^TestLargeRepository$$' ./sync/gitrepo | grep -E 'files|^ok|FAIL'
	ROLLCALL_KILLS=300 go test -count=1 -v -timeout 2h -run '^(TestRealKill|TestRealApply|TestRealReplace)$$' ./cmd/rollcall ./clusters/kube | grep -E 'runs,|Kills|^ok|FAIL'
	ROLLCALL_CHURN=$(D) go test -count=1 -v -timeout 2h -run '^TestRealChurn$$' ./cmd/rollcall | grep -vE '^ +[EIW][0-9]{4}|"level":'

golden: ## rewrite golden files; read the diff before you commit it
	go test ./cmd/rollcall ./controller ./controller/coverage ./controller/report ./render/build -update

peers: ## render the checkouts in DIR, made for other tools, and compare with kustomize alone
	ROLLCALL_PEERS="$(abspath $(DIR))" go test -count=1 -v -run '^TestPeers$$' ./render/build | grep -E '^[a-z0-9-]+[+]|peers_test|^ok|FAIL'

agents: kube ## deliver the public agents in DIR, a folder each, to a real API server: none may differ
	ROLLCALL_AGENTS="$(abspath $(DIR))" go test -count=1 -v -timeout 1h -run '^TestAgents$$' ./controller/drift | grep -vE '[EIW][0-9]{4} [0-9:]+|"level":' | grep -E '^[a-z0-9-]+: |^  [a-z]|agents_test|site_test|^ {8}|^ok|FAIL'

kube: ## build etcd, kube-apiserver and the rest for tests (once a machine, about 20 minutes)
	@bash $(KUBE)/build.sh

needs:
	@missing=; for p in git:git gcc:gcc gpg:gnupg ssh-keygen:openssh-client /usr/sbin/sshd:openssh-server; do command -v $${p%%:*} >/dev/null || missing="$$missing $${p##*:}"; done; \
	test -z "$$missing" || (apt-get update -q && apt-get install -y $$missing) >&2 || { echo "install these Debian packages first:$$missing" >&2; exit 1; }
