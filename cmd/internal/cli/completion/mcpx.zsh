#compdef mcpx mcpx-sse
_mcpx() {
    local -a found
    local line
    for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n "$line" ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#found} )); then
        _describe 'mcpx' found
    else
        _files
    fi
}
compdef _mcpx mcpx mcpx-sse
