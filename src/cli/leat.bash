# shellcheck shell=bash
# Bash completion of leat. Commands, options and what takes a value are read from leat's own help, which needs no
# Redis. Ids and labels of tasks, hosts and lanes are asked for; if Redis does not answer soon, there are none.
# leat.zsh and leat.fish do the same.

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

# Prints the values of members of JSON with these names. Values that a shell has to quote are left out.
_leat_values() { # NAME|NAME...
    tr -d '\n' | grep -oE "\"($1)\": *\"[A-Za-z0-9_.:@/+-]+\"" | cut -d '"' -f 4
}

# Prints a word of the command line without quotes, and with the home folder for ~/. Nothing in it is run.
_leat_plain() { # WORD
    local word=${1/#\~\//$HOME/}
    printf '%s\n' "${word//[\\\"\']/}"
}

# Prints what the queue has: ids and labels (tasks, dead), hosts or lanes. Others choose these, and compgen -W would run
# commands in them, so what a shell has to quote is left out. So is what looks like an option.
_leat_known() { # KIND; program and given are the caller's
    local ask=(timeout 2 "$program" "${given[@]}") answer
    {
        case $1 in
        tasks) "${ask[@]}" list --limit 200 --json | _leat_values 'tid|id' ;;
        dead) "${ask[@]}" dead list --limit 200 --json | _leat_values 'tid|id' ;;
        hosts) # those with workers, and those that are drained without one
            answer=$("${ask[@]}" status --json | tr -d '\n ')
            _leat_values host <<<"$answer"
            grep -oE '"drained":\["[^]]+' <<<"$answer" | sed 's/.*\[//; s/"//g; s/,/\n/g'
            ;;
        lanes)
            "${ask[@]}" status --lanes 200 --json | _leat_values lane
            "${ask[@]}" list --limit 200 --json | _leat_values lane
            ;;
        esac
    } 2>/dev/null </dev/null | grep -xE '[A-Za-z0-9_.:@/+][A-Za-z0-9_.:@/+-]*' | sort -u
}

_leat_offer() { # KIND: files, commands, queues, tasks, dead, hosts, lanes, or words to choose from
    local path folder=${LEAT_CONFIG_DIR:-/etc/leat}
    case $1 in
    tasks | dead | hosts | lanes)
        mapfile -t COMPREPLY < <(compgen -W "$(_leat_known "$1")" -- "$current")
        ;;
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
    --lane) _leat_offer lanes ;;
    --state) _leat_offer 'ready running delayed retrying dead done' ;;
    --by) _leat_offer 'command lane worker' ;;
    --cause)
        _leat_offer 'exit signal killed oom timeout output-limit cannot-execute refused reported no-verdict check crash expired vanished damaged'
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

# Offers what a command takes besides options.
_leat_operand() { # the variables of _leat
    case $command:$topic in
    help:ini) ((position > 1)) || _leat_offer "$(_leat_keys "$program" "$current")" ;;
    show:* | explain:* | attach:* | logs:* | wait:* | cancel:* | move:* | edit:* | now:*) _leat_offer tasks ;;
    dead:show | dead:retry | dead:drop) _leat_offer dead ;;
    drain:* | undrain:*) _leat_offer hosts ;;
    destroy:) _leat_offer queues ;;
    conf:)
        if [[ $current == lane:* ]]; then
            current=${current#lane:}
            _leat_offer lanes
            COMPREPLY=("${COMPREPLY[@]/#/lane:}")
            return
        fi
        _leat_offer "${words[*]}"
        ;;
    : | help:) _leat_offer "${words[*]} help${command:+ ini}" ;;
    *:) _leat_offer "${words[*]}" ;;
    esac
}

_leat() {
    local program=${1/#\~/$HOME} line=${COMP_LINE:0:COMP_POINT} current before='' command='' topic='' position=0 ended=''
    local i word replaced
    local -a words options common=() given=() typed=()
    local -A values=()
    COMPREPLY=()

    # bash begins another word at each : = and @
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i > 0)) && [[ $line != [[:space:]]* ]]; then
            typed[${#typed[@]} - 1]+=${COMP_WORDS[i]}
        else
            typed+=("${COMP_WORDS[i]}")
        fi
        line=${line#*"${COMP_WORDS[i]}"}
    done
    current=${typed[-1]}
    unset 'typed[-1]'

    _leat_read "$program"
    for ((i = 1; i < ${#typed[@]}; i++)); do
        word=${typed[i]}
        case $word in
        --) [[ -n $ended ]] || ended=$i ;;
        -[qc]?* | --queue=* | --config=* | --redis=* | --password-file=*) given+=("$(_leat_plain "$word")") ;;
        -*) ;;
        *)
            if [[ $before == -[qc] || -n $before && -n ${values[$before]-} ]]; then
                # the queue that is asked
                case $before in
                -q | -c | --queue | --config | --redis | --password-file) given+=("$before" "$(_leat_plain "$word")") ;;
                esac
                before=''
                continue
            elif [[ -z $command ]]; then
                command=$word
                if [[ $command != help ]]; then
                    # no program's help for words that are none of its commands
                    [[ " ${words[*]} " == *" $command "* ]] || return 0
                    common=("${options[@]#--version}") # which cannot follow a command
                    _leat_read "$program" "$command"
                fi
            else
                topic=${topic:-$word}
                position=$((position + 1))
            fi
            ;;
        esac
        before=$word
    done

    # bash replaces only what follows the last : or =, or what begins with the last @
    replaced=${COMP_WORDBREAKS//[^:=@]/}
    replaced=${replaced:+${current%"${current##*["$replaced"]}"}}
    replaced=${replaced%@}
    if [[ -n $ended ]]; then
        if ((ended == ${#typed[@]} - 1)); then
            _leat_offer commands
        else
            _leat_offer files
        fi
    elif [[ $current == --*=* ]]; then
        before=${current%%=*} current=${current#*=}
        _leat_value "$before"
        COMPREPLY=("${COMPREPLY[@]/#/$before=}")
    elif _leat_value "$before"; then
        :
    elif [[ $current == -* ]]; then
        _leat_offer "${options[*]} ${common[*]}"
    else
        _leat_operand
    fi
    COMPREPLY=("${COMPREPLY[@]#"$replaced"}")
}

complete -F _leat leat
