#!/usr/bin/env bash
# Runs the official conformance suite (npm) against mcpx-sse in flat mode with
# "prefix": false, in front of go-sdk's conformance server on stdio. Everything is
# installed into a scratch folder from the package registries. --suite all is the
# 30 scenarios that the suite runs by itself, and the two it calls pending.
#
#   e2e/conformance.sh [TIMES [REPLICAS]]
#
# With more than one replica, they share a key and a store, and e2e/cluster sends each
# request to the next one. This needs redis-server or valkey-server. The exit code is 2 if
# something that the suite needs cannot be installed here.
set -euo pipefail
times=${1:-1}
replicas=${2:-1}
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$scratch"' EXIT

cd "$scratch"
command -v npm >/dev/null || { echo "no npm here" && exit 2; }
npm init -y >/dev/null
missing() { echo "$1" && exit 2; }
npm install --silent --no-audit --no-fund @modelcontextprotocol/conformance@0.1.16 node@22 >/dev/null || missing "the suite cannot be installed from npm"
GOBIN="$scratch" go install github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0 || missing "go-sdk's server cannot be installed"
(cd "$root" && go build -o "$scratch/" ./cmd/mcpx-sse ./e2e/cluster)

# background starts a command and waits for a URL in its output: background NAME COMMAND...
background() {
    local name=$1
    shift
    : >"$name.log" # now, since the command may open it only after the first look
    "$@" >>"$name.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do
        url=$(sed -n 's/.*\(http:\/\/[0-9.:]*\).*/\1/p' "$name.log" | head -n 1)
        [ -n "$url" ] && return
        read -r -t 0.1 <> <(:) || true
    done
    echo "$name did not start:" && cat "$name.log" && exit 1
}

server='{}'
if [ "$replicas" -gt 1 ]; then
    store=$(command -v "${MCPX_REDIS:-redis-server}" || command -v valkey-server) || missing "no redis-server and no valkey-server here"
    port=$(node_modules/.bin/node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
    "$store" --port "$port" --bind 127.0.0.1 --save "" --dir "$scratch" >store.log 2>&1 &
    pids+=($!)
    server="{\"session_key\": \"$(head -c 32 /dev/urandom | base64)\", \"store\": \"redis://127.0.0.1:$port\"}"
fi
cat >mcpx.json <<JSON
{"expose": "flat", "prefix": false, "server": $server, "mcpServers": {"everything": {"command": "$scratch/everything-server"}}}
JSON
urls=()
for n in $(seq "$replicas"); do
    background "mcpx-$n" ./mcpx-sse mcpx.json --port 0
    urls+=("$url")
done
[ "$replicas" -eq 1 ] || background balancer ./cluster "${urls[@]}"

for run in $(seq "$times"); do
    node_modules/.bin/node node_modules/@modelcontextprotocol/conformance/dist/index.js server --url "$url/mcp" --suite all >out 2>&1 || {
        cat out
        exit 1
    }
    scenarios=$(grep -c '^✓' out)
    echo "run $run: $scenarios scenarios, $(tail -n 1 out)"
    [ "$scenarios" -eq 32 ] || { echo "wanted 32 scenarios" && exit 1; }
done
