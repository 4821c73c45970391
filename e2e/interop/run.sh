#!/usr/bin/env bash
# Real servers and real clients with mcpx between them. Everything is installed
# into a scratch folder from the package registries, pinned to the versions below.
#
#   e2e/interop/run.sh [PART...]      all parts, or those named
#
# INTEROP_DIR=FOLDER keeps what is installed for the next run. It prints one
# table and exits with 1 if a line of it failed. What cannot be installed is
# "not run", which is not "pass". A "note" is a measured fact without a verdict.
set -uo pipefail

all=(upstreams cold seed typescript typescript2 python fastmcp gosdk mcpgo inspector mcporter signin teams agents conformance)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
own=
if [ -z "${INTEROP_DIR:-}" ]; then
    INTEROP_DIR=$(mktemp -d)
    own=$INTEROP_DIR
fi
export INTEROP_DIR
trap '[ -z "$own" ] || { chmod -R u+w "$own"; rm -rf "$own"; }' EXIT
mkdir -p "$INTEROP_DIR/bin" "$INTEROP_DIR/parts" "$INTEROP_DIR/work"
results=$INTEROP_DIR/results.tsv
: >"$results"

npm_packages=(
    node@24.21.0 # mcporter wants 24
    @modelcontextprotocol/sdk@1.32.2
    @modelcontextprotocol/client@2.4.0
    @modelcontextprotocol/inspector@2.12.0
    mcporter@0.12.3
    @modelcontextprotocol/server-everything@2026.8.31
    @modelcontextprotocol/server-filesystem
    @modelcontextprotocol/server-memory
    @modelcontextprotocol/server-sequential-thinking
    supergateway@4.0.0
    mcp-remote@0.15.1
    oidc-provider@9.13.3
    jose@6.2.17
)
claude_code=@anthropic-ai/claude-code@2.1.325
codex=@openai/codex@0.166.0
python_packages=(uv==0.13.7 mcp==2.3.0 fastmcp==4.1.2)

log=$INTEROP_DIR/install.log
have_npm=
have_python=

# install brings the tools of the parts. What fails is told by what is missing.
install() {
    echo "installing into a scratch folder ..." >&2
    (cd "$root" && go build -o "$INTEROP_DIR/bin/" ./cmd/... ./e2e/cluster) || exit 1
    if command -v npm >/dev/null; then
        [ -e "$INTEROP_DIR/package.json" ] || echo '{"name":"interop","private":true}' >"$INTEROP_DIR/package.json"
        if [ -e "$INTEROP_DIR/npm.done" ] || (cd "$INTEROP_DIR" && npm install --no-audit --no-fund --no-save "${npm_packages[@]}" >"$log" 2>&1 && touch npm.done); then
            have_npm=yes
        fi
    fi
    if command -v python3 >/dev/null; then
        if [ -e "$INTEROP_DIR/py.done" ] || (python3 -m venv "$INTEROP_DIR/py" && "$INTEROP_DIR/py/bin/pip" install -q "${python_packages[@]}" >>"$log" 2>&1 && touch "$INTEROP_DIR/py.done"); then
            have_python=yes
        fi
    fi
    export PATH=$INTEROP_DIR/bin:$INTEROP_DIR/node_modules/.bin:$INTEROP_DIR/py/bin:$PATH
    export PYTHONPATH=$here
}

# not_run writes a line for a part that cannot be run.
not_run() { printf '%s\t%s\tnot run\t%s\n' "$1" "all of it" "$2" >>"$results"; }

# program runs a program that prints "what TAB outcome TAB reason" lines on fd 3.
# One that ends badly, or says nothing, has failed.
program() {
    local part=$1 lines code
    shift
    echo "== $part" >&2
    lines=$(cd "$INTEROP_DIR/parts" && timeout "${limit:-600}" "$@" 3>&1 1>&2)
    code=$?
    [ -z "$lines" ] || printf '%s\n' "$lines" | sed "s/^/$part\t/" >>"$results"
    if [ $code -ne 0 ] && ! grep -q $'\tFAIL\t' <<<"$lines" || [ -z "$lines" ]; then
        printf '%s\tran to its end\tFAIL\texit status %s\n' "$part" "$code" >>"$results"
    fi
}

# javascript, python: the part's program, if there is something to run it with.
javascript() {
    [ -n "$have_npm" ] || { not_run "$1" "its npm packages cannot be installed"; return; }
    cp "$here"/*.mjs "$INTEROP_DIR/parts/" # imports are looked for from the file up
    program "$1" node "$INTEROP_DIR/parts/$1.mjs"
}
python() {
    [ -n "$have_python" ] || { not_run "$1" "its PyPI packages cannot be installed"; return; }
    [ -n "$have_npm" ] || { not_run "$1" "its npm upstream cannot be installed"; return; }
    program "$1" "$INTEROP_DIR/py/bin/python" "$here/$2"
}

part_upstreams() { javascript upstreams; }
part_cold() { javascript cold; }
part_seed() { python seed seed.py; }
part_typescript() { javascript typescript; }
part_typescript2() { javascript typescript2; }
part_python() { python python python_sdk.py; }
part_fastmcp() { python fastmcp fastmcp_client.py; }
part_inspector() { javascript inspector; }
part_mcporter() { javascript mcporter; }
part_teams() { javascript teams; }
part_signin() { javascript signin; }

# part_agents installs each agent in a folder of its own, so that one can be missing.
part_agents() {
    if [ -n "$have_npm" ]; then
        echo "installing the agents ..." >&2
        npm_folder "$INTEROP_DIR/agents/claude" "$claude_code"
        npm_folder "$INTEROP_DIR/agents/codex" "$codex"
    fi
    javascript agents
}

# npm_folder installs one package into a folder, which is gone if that fails.
npm_folder() {
    [ ! -e "$1/npm.done" ] || return 0
    mkdir -p "$1"
    if timeout 300 npm install --no-audit --no-fund --no-save --prefix "$1" "$2" >>"$log" 2>&1; then
        touch "$1/npm.done"
    else
        rm -rf "$1"
    fi
}

# go_part builds a Go client, which is of a module of its own, and runs it.
go_part() {
    local part=$1 module=$INTEROP_DIR/goclients
    [ -n "$have_npm" ] || { not_run "$part" "its npm upstream cannot be installed"; return; }
    rm -rf "$module" && cp -r "$here/goclients" "$module"
    if ! (cd "$module" && go mod download >>"$log" 2>&1); then
        not_run "$part" "its Go modules cannot be downloaded"
        return
    fi
    if ! (cd "$module" && go build -o "$INTEROP_DIR/bin/$part" "./$part"); then
        printf '%s\tbuilds\tFAIL\tsee above\n' "$part" >>"$results"
        return
    fi
    program "$part" "$INTEROP_DIR/bin/$part"
}
part_gosdk() { go_part gosdk; }
part_mcpgo() { go_part mcpgo; }

# part_conformance installs the suites, each in a folder of its own, the bridges
# and go-sdk's conformance server.
part_conformance() {
    [ -n "$have_npm" ] || { not_run conformance "its npm packages cannot be installed"; return; }
    local suites=$INTEROP_DIR/conformance
    mkdir -p "$suites/0.1" "$suites/0.2"
    if ! { npm install --no-audit --no-fund --no-save --prefix "$suites/0.1" @modelcontextprotocol/conformance@0.1.16 &&
        npm install --no-audit --no-fund --no-save --prefix "$suites/0.2" @modelcontextprotocol/conformance@0.2.0-alpha.12 &&
        GOBIN=$INTEROP_DIR/bin go install github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0; } >>"$log" 2>&1; then
        not_run conformance "the suites or their server cannot be installed"
        return
    fi
    cp "$here"/*.mjs "$INTEROP_DIR/parts/"
    limit=1200 program conformance "$here/conformance.sh"
}

# table prints the lines as Markdown.
table() {
    echo "| part | what | result |"
    echo "|---|---|---|"
    while IFS=$'\t' read -r part what outcome reason; do
        case $outcome in pass) ;; *) outcome="$outcome: $reason" ;; esac
        printf '| %s | %s | %s |\n' "$part" "$what" "${outcome//|/\\|}"
    done <"$results"
    awk -F'\t' '{n[$3]++} END {printf "\n%d passed, %d failed, %d not run\n", n["pass"], n["FAIL"], n["not run"]}' "$results"
}

main() {
    local part
    for part in "${parts[@]}"; do
        declare -F "part_$part" >/dev/null || { echo "run.sh: no part \"$part\"; there are: ${all[*]}" >&2; exit 2; }
    done
    install
    for part in "${parts[@]}"; do
        "part_$part"
    done
    table
    ! grep -q $'\tFAIL\t' "$results"
    exit
}
main
