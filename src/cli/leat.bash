# shellcheck shell=bash
# Bash completion of leat. Commands, options and what takes a value are read from leat's own help, which needs no
# Redis; tasks' ids, hosts and keys are not completed, since that would.

# _leat_read PROGRAM [COMMAND]: sets the caller's words (commands, or what a command takes besides options),
# options (the long ones) and values (of an option: what its value is called).
_leat_read() {
    local line
    words=() options=()
    while IFS= read -r line; do
        if [[ $line =~ ^"  "(-[A-Za-z], )?(--[a-z][a-z-]*)(" "([A-Z]+))? ]]; then
            options+=("${BASH_REMATCH[2]}")
            values[${BASH_REMATCH[2]}]=${BASH_REMATCH[4]}
        elif [[ $line =~ ^"  "([a-z][a-z_]*)"  " ]]; then
            words+=("${BASH_REMATCH[1]}")
        elif [[ -n ${2-} && $line =~ ^("Usage:"|"      ")" leat $2 "([a-z]+) ]]; then
            words+=("${BASH_REMATCH[2]}")
        fi
    done < <("$@" --help 2>/dev/null)
}

# Prints the keys that leat help ini knows: as KEY, or as SECTION.KEY if the word has a dot.
_leat_keys() { # PROGRAM WORD
    local section key
    while read -r key _; do
        section=${key%%.*}
        [[ $section != command ]] || section=command.NAME
        [[ $2 == *.* ]] || key=${key#"$section."}
        echo "$key"
    done < <("$1" help ini 2>/dev/null | tail -n +2)
}

_leat_offer() { # KIND: files, commands, queues, or words to choose from
    local path folder=${LEAT_CONFIG_DIR:-/etc/leat}
    case $1 in
    files)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        ;;
    commands)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -c -- "$current")
        ;;
    queues)
        for path in "$folder"/*.ini; do
            path=${path##*/}
            [[ $path == '*.ini' || ${path%.ini} != "$current"* ]] || COMPREPLY+=("${path%.ini}")
        done
        ;;
    *)
        mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
        ;;
    esac
}

# Offers values where the word before wants one. Returns 1 where it does not.
_leat_value() { # OPTION
    case $1 in
    -q) _leat_offer queues ;;
    -c) _leat_offer files ;;
    --state) _leat_offer 'ready running delayed retrying dead' ;;
    --cause)
        _leat_offer 'exit signal killed oom timeout output-limit cannot-execute refused reported check crash expired vanished damaged'
        ;;
    *)
        case ${1:+${values[$1]-}} in
        '') return 1 ;;
        QUEUE) _leat_offer queues ;;
        FILE | DIR) _leat_offer files ;;
        esac
        ;;
    esac
}

_leat() {
    local program=${1/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]} before='' command='' topic='' position=0 ended='' i
    local -a words options common=()
    local -A values=()
    COMPREPLY=()

    _leat_read "$program"
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        '=') continue ;; # bash makes three words of --option=value
        --) [[ -n $ended ]] || ended=$i ;;
        -*) ;;
        *)
            if [[ $before == -[qc] || -n $before && -n ${values[$before]-} ]]; then
                before=''
                continue
            elif [[ -z $command ]]; then
                command=${COMP_WORDS[i]}
                if [[ $command != help ]]; then
                    # no program's help for words that are none of its commands
                    [[ " ${words[*]} " == *" $command "* ]] || return 0
                    common=("${options[@]}")
                    _leat_read "$program" "$command"
                fi
            else
                topic=${topic:-${COMP_WORDS[i]}}
                position=$((position + 1))
            fi
            ;;
        esac
        before=${COMP_WORDS[i]}
    done

    if [[ $current == '=' ]]; then
        current=''
    fi
    if [[ -n $ended ]]; then
        if ((ended == COMP_CWORD - 1)); then
            _leat_offer commands
        else
            _leat_offer files
        fi
    elif _leat_value "$before"; then
        return
    elif [[ $current == -* ]]; then
        _leat_offer "${options[*]} ${common[*]}"
    elif [[ $command == help && $topic == ini ]]; then
        ((position > 1)) || _leat_offer "$(_leat_keys "$program" "$current")"
    elif ((position == 0)); then
        [[ $command != help ]] || words+=(ini)
        _leat_offer "${words[*]}"
    fi
}

complete -F _leat leat
