# Completion of forbear for fish:
# forbear completion fish > ~/.config/fish/completions/forbear.fish

function __forbear_complete
    set -l before (commandline -opc)
    set -l typed (commandline -ct)
    set -l found ($before[1] completion words -- $before[2..-1] "$typed" 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path "$typed"
    end
end

complete -c forbear -f -a '(__forbear_complete)'
