#!/usr/bin/env bash
# The official conformance suite over every way into mcpx and out of it. Run by
# run.sh, which installs what it needs; says what came of it on fd 3.
#
# A run passes if no scenario fails but those known to: they are named in the
# line, and explained in docs/conformance.md.
set -uo pipefail
stable=$INTEROP_DIR/conformance/0.1/node_modules/@modelcontextprotocol/conformance/dist/index.js
next=$INTEROP_DIR/conformance/0.2/node_modules/@modelcontextprotocol/conformance/dist/index.js
out=$INTEROP_DIR/parts/conformance.out
pids=()
trap 'for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null; done; wait' EXIT

# background starts a command in a process group of its own and waits for a line of its log.
background() {
    local log=$1 pattern=$2
    shift 2
    : >"$log"
    setsid "$@" >>"$log" 2>&1 &
    pids+=($!)
    for _ in $(seq 300); do
        grep -q "$pattern" "$log" && return
        read -r -t 0.1 <> <(:)
    done
    echo "$1 did not start:" >&2
    cat "$log" >&2
    exit 1
}

# port is one that nothing listens on.
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# judge compares what failed with what is known to: judge WHAT KNOWN...
judge() {
    local what=$1 failed new="" passed
    shift
    failed=$(grep '^✗' "$out" | sed 's/^✗ \([^:]*\):.*/\1/')
    # What a requirement set does not score is listed again, indented.
    local unscored
    unscored=$(sed -n 's/^  [✓✗] \([^ ]*\) (.*/\1/p' "$out")
    passed=$(grep '^✓' "$out" | sed 's/^✓ \([^:]*\):.*/\1/' | grep -vcxF "${unscored:-none}")
    local known="" scenario
    for scenario in $failed; do
        grep -qxF "$scenario" <<<"$unscored" && continue
        case " $* " in
        *" $scenario "*) known+=" $scenario" ;;
        *) new+=" $scenario" ;;
        esac
    done
    if [ -n "$new" ] || [ "$passed" -eq 0 ]; then
        printf '%s\tFAIL\t%s\n' "$what" "${new:-nothing passed}" >&3
        cat "$out" >&2
        return
    fi
    printf '%s: %s scenarios pass%s\tpass\t\n' "$what" "$passed" "${known:+, known misses:$known}" >&3
}

cat >conformance.json <<JSON
{"expose": "flat", "prefix": false, "mcpServers": {"everything": {"command": "$INTEROP_DIR/bin/everything-server"}}}
JSON
front=$(port)
background front.log 'url=' mcpx-sse conformance.json --port "$front"
stdio=$(port)
background stdio.log 'istening' supergateway --stdio "mcpx conformance.json" --outputTransport streamableHttp --stateful --port "$stdio"
sse=$(port)
background sse.log 'istening' supergateway --stdio "mcp-remote http://127.0.0.1:$front/sse --transport sse-only --allow-http" --outputTransport streamableHttp --stateful --port "$sse"

server() { node "$1" server --url "http://127.0.0.1:$2/mcp" "${@:3}" >"$out" 2>&1; }

server "$stable" "$front" --suite all
judge "0.1.16, all, HTTP"
# Three replicas, and a balancer that sends each request to the next one.
if store=$(command -v "${MCPX_REDIS:-redis-server}" || command -v valkey-server); then
    shared=$(port)
    background store.log 'Ready to accept' "$store" --port "$shared" --bind 127.0.0.1 --save ""
    cat >replicas.json <<JSON
{"expose": "flat", "prefix": false, "server": {"session_key": "$(head -c 32 /dev/urandom | base64)", "store": "redis://127.0.0.1:$shared"},
 "mcpServers": {"everything": {"command": "$INTEROP_DIR/bin/everything-server"}}}
JSON
    replicas=()
    for n in 1 2 3; do
        own=$(port)
        background "replica-$n.log" 'url=' mcpx-sse replicas.json --port "$own"
        replicas+=("http://127.0.0.1:$own")
    done
    background balancer.log '^http:' "$INTEROP_DIR/bin/cluster" "${replicas[@]}"
    balancer=$(sed 's/.*://' balancer.log)
    server "$stable" "$balancer" --suite all
    judge "0.1.16, all, HTTP, three replicas behind a balancer"
else
    printf '0.1.16, all, HTTP, three replicas behind a balancer\tnot run\tno redis-server and no valkey-server here\n' >&3
fi
# The bridge checks no Host.
server "$stable" "$stdio" --suite all
judge "0.1.16, all, stdio by supergateway" dns-rebinding-protection
server "$stable" "$sse" --suite all
judge "0.1.16, all, SSE by mcp-remote and supergateway" dns-rebinding-protection
# requirements runs what a revision requires against mcpx in front of an upstream: requirements NAME REVISION ENTRY KNOWN...
requirements() {
    local name=$1 revision=$2 entry=$3 own
    own=$(port)
    printf '{"expose": "flat", "prefix": false, "mcpServers": {"everything": %s}}' "$entry" >"$name.json"
    background "$name.log" 'url=' mcpx-sse "$name.json" --port "$own"
    server "$next" "$own" --requirements "$revision"
    judge "0.2.0-alpha.12, requirements of $revision, HTTP, upstream over $name" "${@:4}"
}
everything=$INTEROP_DIR/bin/everything-server
stateful=$(port)
background stateful.log 'listening' "$everything" -http "127.0.0.1:$stateful" -stateless=false
stateless=$(port)
background stateless.log 'listening' "$everything" -http "127.0.0.1:$stateless" -stateless=true
# A server without sessions cannot send requests to clients of earlier revisions: it fails these without mcpx, too.
requirements stdio 2025-11-25 "{\"command\": \"$everything\"}"
requirements stateful-http 2025-11-25 "{\"url\": \"http://127.0.0.1:$stateful\"}"
requirements stateless-http 2025-11-25 "{\"url\": \"http://127.0.0.1:$stateless\"}" \
    tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults elicitation-sep1330-enums
# A server with sessions refuses 2026-07-28, so mcpx cannot use it. Whether it fails capability-check depends on the order of its requests.
requirements stdio 2026-07-28 "{\"command\": \"$everything\"}"
requirements stateless-http 2026-07-28 "{\"url\": \"http://127.0.0.1:$stateless\"}"
requirements stateful-http 2026-07-28 "{\"url\": \"http://127.0.0.1:$stateful\"}" \
    server-stateless input-required-result-basic-elicitation input-required-result-multiple-input-requests input-required-result-multi-round \
    input-required-result-capability-check

# client runs the client suite: mcpx is the client of the suite's servers. auth/* is judged elsewhere.
client() {
    node "$1" client --command "node $INTEROP_DIR/parts/client_driver.mjs" "${@:2}" 2>&1 | grep -v '^ *[✓✗] auth/' >"$out"
}
for scenario in initialize tools_call elicitation-sep1034-client-defaults sse-retry; do
    if node "$stable" client --command "node $INTEROP_DIR/parts/client_driver.mjs" --scenario $scenario >"$out.client" 2>&1; then
        echo "✓ $scenario: passed"
    else
        echo "✗ $scenario: failed"
    fi
done >"$out"
judge "0.1.16, client suite, mcpx as the client"
client "$next" --requirements 2025-11-25
judge "0.2.0-alpha.12, client requirements of 2025-11-25 without auth"
client "$next" --requirements 2026-07-28
judge "0.2.0-alpha.12, client requirements of 2026-07-28 without auth"

# signin runs one scenario about OAuth at a revision: signin REVISION SCENARIO [FLAG...]
signin() {
    if node "$next" client --command "node $INTEROP_DIR/parts/auth_driver.mjs" --spec-version "$1" --scenario "auth/$2" "${@:3}" >>"$out.client" 2>&1; then
        echo "✓ $2: passed"
    else
        echo "✗ $2: failed"
    fi
}
required=(metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd scope-from-www-authenticate scope-from-scopes-supported
    scope-omitted-when-undefined scope-step-up scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none pre-registration)
added=(resource-mismatch offline-access-scope offline-access-not-supported authorization-server-migration iss-supported iss-not-advertised
    iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch)
for scenario in "${required[@]}"; do signin 2025-11-25 "$scenario"; done >"$out"
judge "0.2.0-alpha.12, client suite, auth of 2025-11-25"
for scenario in "${required[@]}" "${added[@]}"; do signin 2026-07-28 "$scenario"; done >"$out"
judge "0.2.0-alpha.12, client suite, auth of 2026-07-28"
for scenario in client-credentials-basic client-credentials-jwt; do signin 2026-07-28 "$scenario" --force; done >"$out"
judge "0.2.0-alpha.12, client suite, auth extension client credentials"
