# bash completion for Terrane's programs. What there is to complete, the program itself says: `--flags` lists its commands
# or flags, one a line, from the very tables that read them:
#   --name kind [choice...]      kind: bool (takes no value), choice, file, value
_terrane()
{
    local program=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=() first=1 line
    COMPREPLY=()
    if [[ ${program##*/} == terrane ]]; then
        if ((COMP_CWORD == 1)); then
            mapfile -t COMPREPLY < <(compgen -W "$("$program" --flags 2>/dev/null)" -- "$word")
            return
        fi
        command=("${COMP_WORDS[1]}")
        first=2
    fi
    # Behind a lone "--" stands another command (terrane agent -- PROGRAM): that one's own completion.
    local at
    for ((at = first; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then _command_offset $((at + 1)); fi
            return
        fi
    done
    local -A kinds=() choices=()
    local name kind rest
    while read -r name kind rest; do
        kinds[$name]=$kind
        choices[$name]=$rest
    done < <("$program" "${command[@]}" --flags 2>/dev/null)
    # --name=value comes as three words, --name value as two.
    if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    case ${kinds[$before]-} in
    choice) mapfile -t COMPREPLY < <(compgen -W "${choices[$before]}" -- "$word"); return ;;
    file) mapfile -t COMPREPLY < <(compgen -f -- "$word"); compopt -o filenames 2>/dev/null; return ;;
    value) return ;;
    esac
    local names=()
    for name in "${!kinds[@]}"; do
        names+=("$name")
        if [[ ${kinds[$name]} == bool && $word == --no-* ]]; then names+=("--no-${name#--}"); fi
    done
    if [[ $word == -* || -z $word ]]; then mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$word"); fi
}
complete -F _terrane terrane terrane-coordinator terrane-cellserver
