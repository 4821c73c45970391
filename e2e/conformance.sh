#!/usr/bin/env bash
# Runs the official conformance suite (npm) against mcpx-sse in flat mode with
# "prefix": false, in front of go-sdk's conformance server on stdio. Everything is
# installed into a scratch folder from the package registries. --suite all is the
# 30 scenarios that the suite runs by itself, and the two it calls pending.
#
#   e2e/conformance.sh [TIMES]
set -euo pipefail
times=${1:-1}
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
mcpx=
trap '[ -z "$mcpx" ] || kill "$mcpx" 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT

cd "$scratch"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @modelcontextprotocol/conformance@0.1.16 node@22 >/dev/null
GOBIN="$scratch" go install github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0
(cd "$root" && go build -o "$scratch/mcpx-sse" ./cmd/mcpx-sse)

cat >mcpx.json <<JSON
{"expose": "flat", "prefix": false, "mcpServers": {"everything": {"command": "$scratch/everything-server"}}}
JSON
./mcpx-sse mcpx.json --port 0 2>log &
mcpx=$!
url=
for _ in $(seq 100); do
    url=$(sed -n 's/.* url=\(http[^ ]*\).*/\1/p' log | head -n 1)
    [ -n "$url" ] && break
    read -r -t 0.1 <> <(:) || true
done
[ -n "$url" ] || { echo "mcpx-sse did not start:" && cat log && exit 1; }

for run in $(seq "$times"); do
    node_modules/.bin/node node_modules/@modelcontextprotocol/conformance/dist/index.js server --url "$url" --suite all >out 2>&1 || {
        cat out
        exit 1
    }
    scenarios=$(grep -c '^✓' out)
    echo "run $run: $scenarios scenarios, $(tail -n 1 out)"
    [ "$scenarios" -eq 32 ] || { echo "wanted 32 scenarios" && exit 1; }
done
