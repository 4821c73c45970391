# fish completion of mcpx
function __mcpx_complete
    set -l words (commandline -opc)
    set -l found ($words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c mcpx -f -a '(__mcpx_complete)'
complete -c mcpx-sse -f -a '(__mcpx_complete)'
