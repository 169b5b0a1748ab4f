#compdef forbear
# Completion of forbear for zsh: source <(forbear completion zsh), behind compinit,
# or as the file _forbear in a folder of $fpath.

_forbear() {
    local line word
    local -a list
    for line in "${(@f)$("${words[1]}" completion words -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        word=${${line%%$'\t'*}//:/\\:}
        if [[ $line == *$'\t'* ]]; then
            list+=("$word:${line#*$'\t'}")
        else
            list+=("$word")
        fi
    done
    if (( ${#list} )); then
        _describe forbear list
    else
        _files
    fi
}

if [[ ${funcstack[1]} == _forbear ]]; then
    _forbear "$@"
else
    compdef _forbear forbear
fi
