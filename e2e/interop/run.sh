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

all=(upstreams cold seed typescript typescript2 python fastmcp oneshot gosdk mcpgo java rust inspector mcporter frameworks converters
    samebytes signin teams agents conformance)
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
everything_server=github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0
# The agent frameworks: name, then packages. The version of the first one is in the table.
openai_agents="openai-agents openai-agents==0.24.0"
pydantic_ai="pydantic-ai pydantic-ai-slim[mcp]==2.66.0"
langchain="langchain langchain-mcp-adapters==0.3.2"
python_frameworks=(
    "$openai_agents"
    "$pydantic_ai"
    "strands strands-agents==1.62.0"
    "llama-index llama-index-tools-mcp==0.6.0"
    "google-adk google-adk[mcp]==2.13.0"
    "mcp-use mcp-use==1.7.1"
    "$langchain"
    "crewai crewai-tools[mcp]==1.15.30"
    "smolagents smolagents[mcp]==1.26.0 mcp[ws]<2"
    "agno agno[mcp]==3.1.10"
    "autogen autogen-ext[mcp]==0.7.5 autogen-agentchat==0.7.5 mcp<2"
    "semantic-kernel semantic-kernel[mcp]==1.45.0"
)
npm_frameworks=(
    "ai-sdk @ai-sdk/mcp@2.0.93"
    "langchain-js @langchain/mcp-adapters@1.1.4 @langchain/core@1.2.13 @langchain/langgraph@1.4.10"
)
# What converts the schema of exec for a model: libraries, then constrained decoders.
converters=(
    "$openai_agents"
    "$pydantic_ai"
    "$langchain"
    "google-genai google-genai==3.3.0 mcp==2.3.0"
    "outlines-core outlines-core==0.2.14"
    "llguidance llguidance==1.9.1"
    "lm-format-enforcer lm-format-enforcer==0.11.3"
)

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

# offline is put before a command that must reach loopback only. Where the system allows
# it, the command and its children are alone with loopback, and end together.
offline=(env HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1,localhost)
isolate=(unshare --map-root-user --net --pid --fork --kill-child --mount-proc sh -c 'ip link set lo up && exec "$@"' -)
"${isolate[@]}" true 2>/dev/null && offline=("${isolate[@]}")
# What the frameworks and the servers know to switch off.
export DO_NOT_TRACK=1 MCP_USE_ANONYMIZED_TELEMETRY=false CREWAI_DISABLE_TELEMETRY=true AGNO_TELEMETRY=false

# not_run writes a line for a part, or for one thing of it, that cannot be run.
not_run() { printf '%s\t%s\tnot run\t%s\n' "$1" "${3:-all of it}" "$2" >>"$results"; }

# program runs a program that prints "what TAB outcome TAB reason" lines on fd 3.
# One that ends badly, or says nothing, has failed.
program() {
    local part=$1 lines code
    shift
    echo "== $part" >&2
    lines=$(cd "$INTEROP_DIR/parts" && timeout -k 10 "${limit:-600}" "$@" 3>&1 1>&2)
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

# npm_folder installs packages into a folder, which is gone if that fails.
npm_folder() {
    [ ! -e "$1/npm.done" ] || return 0
    mkdir -p "$1"
    if timeout 300 npm install --no-audit --no-fund --no-save --prefix "$1" "${@:2}" >>"$log" 2>&1; then
        touch "$1/npm.done"
    else
        rm -rf "$1"
        return 1
    fi
}

# python_folder installs packages into a Python environment, which is gone if that fails.
python_folder() {
    [ ! -e "$1/done" ] || return 0
    if {
        uv venv -q --clear --python "$INTEROP_DIR/py/bin/python" "$1" &&
            timeout 300 uv pip install -q --python "$1/bin/python" "${@:2}"
    } >>"$log" 2>&1; then
        touch "$1/done"
    else
        rm -rf "$1"
        return 1
    fi
}

# part_oneshot needs the first generation of the Python SDK.
part_oneshot() {
    [ -n "$have_python" ] || { not_run oneshot "its PyPI packages cannot be installed"; return; }
    if ! python_folder "$INTEROP_DIR/oneshot" mcp==1.30.0 || ! GOBIN=$INTEROP_DIR/bin go install "$everything_server" >>"$log" 2>&1; then
        not_run oneshot "the Python SDK or go-sdk's server cannot be installed"
        return
    fi
    program oneshot "${offline[@]}" "$INTEROP_DIR/oneshot/bin/python" "$here/oneshot.py"
}

# part_frameworks installs each framework in a folder of its own, so that one can be missing.
part_frameworks() {
    local line name packages version folder
    [ -n "$have_npm" ] && [ -n "$have_python" ] || { not_run frameworks "npm or PyPI packages cannot be installed"; return; }
    for line in "${python_frameworks[@]}" "${npm_frameworks[@]}"; do
        read -ra packages <<<"$line"
        name=${packages[0]} packages=("${packages[@]:1}")
        version=${packages[0]##*[=@]} folder=$INTEROP_DIR/frameworks/$name
        echo "installing $name ..." >&2
        case ${packages[0]} in
        *==*) python_folder "$folder" "${packages[@]}" ;;
        *) npm_folder "$folder" "${packages[@]}" && cp "$here"/{report,mcpx,frameworks}.mjs "$folder" ;;
        esac || { not_run frameworks "cannot be installed" "$name $version"; continue; }
        case ${packages[0]} in
        *==*) limit=300 program frameworks "${offline[@]}" "$folder/bin/python" "$here/frameworks.py" "$name" "$version" ;;
        *) limit=300 program frameworks "${offline[@]}" node "$folder/frameworks.mjs" "$name" "$version" ;;
        esac
    done
}

# part_converters installs each converter in a folder of its own, so that one can be missing.
# Those that are frameworks share it with part_frameworks.
part_converters() {
    local line name packages version folder
    [ -n "$have_python" ] || { not_run converters "its PyPI packages cannot be installed"; return; }
    for line in "${converters[@]}"; do
        read -ra packages <<<"$line"
        name=${packages[0]} packages=("${packages[@]:1}")
        version=${packages[0]##*=} folder=$INTEROP_DIR/frameworks/$name
        echo "installing $name ..." >&2
        python_folder "$folder" "${packages[@]}" || { not_run converters "cannot be installed" "$name $version"; continue; }
        limit=300 program converters "${offline[@]}" "$folder/bin/python" "$here/converters.py" "$name" "$version"
    done
}

# part_samebytes installs the servers and calls them with a home of their own.
part_samebytes() {
    [ -n "$have_npm" ] && [ -n "$have_python" ] || { not_run samebytes "npm or PyPI packages cannot be installed"; return; }
    echo "installing the servers ..." >&2
    cp "$here"/*.mjs "$INTEROP_DIR/parts/"
    mkdir -p "$INTEROP_DIR/work/home"
    timeout 900 node "$INTEROP_DIR/parts/samebytes.mjs" install >>"$log" 2>&1
    limit=900 program samebytes "${offline[@]}" env HOME="$INTEROP_DIR/work/home" node "$INTEROP_DIR/parts/samebytes.mjs"
}

# sdk_part runs the SDK of another language with sdks.py: sdk_part PART REVISIONS VERSION PROGRAM...
sdk_part() {
    [ -n "$have_npm" ] && [ -n "$have_python" ] || { not_run "$1" "npm or PyPI packages cannot be installed"; return; }
    REVISIONS=$2 program "$1" "${offline[@]}" "$INTEROP_DIR/py/bin/python" "$here/sdks.py" "${@:3}"
}
part_java() {
    command -v java >/dev/null && command -v mvn >/dev/null || { not_run java "no java or no mvn"; return; }
    if ! (cd "$here/java" && timeout 300 mvn -B -q dependency:copy-dependencies -DoutputDirectory="$INTEROP_DIR/java" >>"$log" 2>&1); then
        not_run java "the SDK cannot be downloaded"
        return
    fi
    sdk_part java legacy "Java SDK 2.1.0" java -cp "$INTEROP_DIR/java/*" "$here/java/Interop.java"
}
part_rust() {
    command -v cargo >/dev/null || { not_run rust "no cargo"; return; }
    if ! (cd "$here/rust" && timeout 900 cargo build -q --locked --target-dir "$INTEROP_DIR/rust" >>"$log" 2>&1); then
        not_run rust "the SDK cannot be downloaded or built"
        return
    fi
    sdk_part rust "legacy 2026-07-28" "rmcp 3.8.0" "$INTEROP_DIR/rust/debug/interop"
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
        GOBIN=$INTEROP_DIR/bin go install "$everything_server"; } >>"$log" 2>&1; then
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
