# One door to everything. Each recipe is a plain command that also works alone.

lint_version := "v2.11.0"
goreleaser_version := "v2.13.0"
vulncheck_version := "v1.8.0"

# everything that must hold before a commit
check: fmt vet lint vuln race cross

# the two binaries, in bin/
build:
    go build -o bin/ ./cmd/...

# the tests, as in the README
test:
    go test ./...

# the tests with the race detector, in random order
race:
    go test -race -shuffle=on ./...

# fails if a file is not formatted
fmt:
    test -z "$(gofmt -l .)"

vet:
    go vet ./...

lint:
    go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@{{lint_version}} run ./...

# known vulnerabilities in what mcpx uses; needs the database at vuln.go.dev
vuln:
    go run golang.org/x/vuln/cmd/govulncheck@{{vulncheck_version}} ./...

# mcpx builds for the systems it cannot be tested on here
cross:
    GOOS=darwin GOARCH=arm64 go build ./cmd/...
    GOOS=windows GOARCH=amd64 go build ./cmd/...
    GOOS=darwin go vet ./...
    GOOS=windows go vet ./...

# coverage of the packages a call passes through
cover:
    go test -cover ./config ./registry ./executor/... ./server/... ./internal/rpc ./registry/link

# the official conformance suite against mcpx in front of go-sdk's conformance server, that many times; "just conformance 1 3" uses three replicas
conformance times="1" replicas="1":
    e2e/conformance.sh {{times}} {{replicas}}

# the core builds, and its tests pass, without each part in turn
without-parts:
    e2e/without-parts.sh

# real servers and real clients with mcpx between them, from the package registries; parts can be named
interop *parts:
    e2e/interop/run.sh {{parts}}

# the binaries, archives, checksums and SBOMs (by syft) of a release, in dist/, without publishing
snapshot:
    go run github.com/goreleaser/goreleaser/v2@{{goreleaser_version}} release --snapshot --clean

# tokens until a tool can be called, over a folder of tool lists (NAME.json, results of tools/list)
economy folder:
    go run ./e2e/economy {{folder}}

# how well search finds tools, beside a plain BM25, over clones of LiveMCPBench and MetaTool in a folder
search-benchmark folder:
    go run ./e2e/searchbench {{folder}}

# the pictures in docs/images, taken by the tests of the console; they look best with the font Inter installed
screenshots:
    go test -count=1 ./e2e/console -run '^TestScreenshots$' -screenshots ../../docs/images

# kills upstreams at random under load from many clients over both fronts, and checks every answer
soak time="60s":
    go run ./e2e/soak -for {{time}}

# mcpx beside a direct upstream and a relay that only rewrites ids: times and ratios, in the same run
bench rounds="30":
    go test -run '^$' -bench . -benchtime {{rounds}}x mcpx/e2e/bench

# every fuzz target, each for that long
fuzz time="60s":
    #!/usr/bin/env bash
    set -euo pipefail
    for package in $(go list ./...); do
        for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
            go test -run '^$' -fuzz "^$target\$" -fuzztime {{time}} "$package"
        done
    done
