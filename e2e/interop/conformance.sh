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
# The bridge checks no Host.
server "$stable" "$stdio" --suite all
judge "0.1.16, all, stdio by supergateway" dns-rebinding-protection
server "$stable" "$sse" --suite all
judge "0.1.16, all, SSE by mcp-remote and supergateway" dns-rebinding-protection
server "$next" "$front" --requirements 2025-11-25
judge "0.2.0-alpha.12, requirements of 2025-11-25, HTTP"
server "$next" "$front" --requirements 2026-07-28
judge "0.2.0-alpha.12, requirements of 2026-07-28, HTTP" server-stateless input-required-result-basic-elicitation \
    input-required-result-multiple-input-requests input-required-result-multi-round input-required-result-capability-check

# client runs one scenario of the client suite: mcpx is the client of the suite's server.
client() {
    if node "$1" client --command "node $INTEROP_DIR/parts/client_driver.mjs" --scenario "$2" >>"$out.client" 2>&1; then
        echo "✓ $2: passed"
    else
        echo "✗ $2: failed"
    fi
}
for scenario in initialize tools_call elicitation-sep1034-client-defaults sse-retry; do client "$stable" $scenario; done >"$out"
judge "0.1.16, client suite, mcpx as the client"
for scenario in initialize tools_call elicitation-sep1034-client-defaults sse-retry request-metadata sep-2322-client-request-state \
    http-standard-headers http-custom-headers http-invalid-tool-headers json-schema-ref-no-deref json-schema-2020-12-preservation; do
    client "$next" $scenario
done >"$out"
judge "0.2.0-alpha.12, client suite, mcpx as the client" request-metadata http-standard-headers http-custom-headers http-invalid-tool-headers

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
