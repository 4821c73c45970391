# bash completion of mcpx
_mcpx() {
    local word="${COMP_WORDS[COMP_CWORD]}"
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null | cut -f1)
}
complete -o bashdefault -o default -F _mcpx mcpx mcpx-sse
