#!/usr/bin/env bash
# Proves that the core needs no part: for each folder in internal/parts, the core's packages and
# their tests build and pass as if that folder did not exist. With a build cache this is quick,
# because nothing of the core changes.
#
#   e2e/without-parts.sh
set -euo pipefail
cd "$(dirname "$0")/.."
core=(./config/... ./registry/... ./executor/... ./server/...)
overlay=$(mktemp)
trap 'rm -f "$overlay"' EXIT

for part in internal/parts/*/; do
    name=$(basename "$part")
    # An overlay in which each file of the part is replaced by nothing.
    find "$PWD/$part" -type f -name '*.go' | sed 's/.*/"&": ""/' | paste -sd, | sed 's/.*/{"Replace": {&}}/' >"$overlay"
    if go build -overlay="$overlay" ./internal/app 2>/dev/null; then
        echo "internal/app builds without $name: nobody uses it"
        exit 1
    fi
    go vet -overlay="$overlay" "${core[@]}"
    go test -overlay="$overlay" "${core[@]}" >/dev/null || {
        echo "the core's tests fail without $name"
        exit 1
    }
    echo "without $name: ok"
done
