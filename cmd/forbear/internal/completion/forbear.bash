# Completion of forbear for bash 3.2 or later: source <(forbear completion bash)

_forbear() {
    local line words cut=
    # Not COMP_WORDS: bash breaks words at "=" and ":", and forbear does not.
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
    # What is replaced is what bash takes for the word.
    local typed=${words[${#words[@]} - 1]}
    [[ $typed == -*=* && $COMP_WORDBREAKS == *=* ]] && cut=${typed%%=*}=
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$cut"}")
    done < <("$1" completion words -- "${words[@]:1}" 2>/dev/null)
}

complete -o default -F _forbear forbear
