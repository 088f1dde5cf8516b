#compdef leat
# Zsh completion of leat. It does what leat.bash does, and shows descriptions: commands, options and what takes a
# value are read from leat's own help; ids, labels, hosts and lanes are asked for.

# _leat_read [COMMAND]: sets the caller's words (commands, or what a command takes besides options) and options, as
# NAME:DESCRIPTION, and values (of an option: what its value is called).
_leat_read() {
    local line match mbegin mend
    words_known=() options=()
    for line in "${(@f)$("$program" "$@" --help 2>/dev/null)}"; do
        if [[ $line =~ '^  (-[A-Za-z], )?(--[a-z][a-z-]*)( [A-Z]+)?(.*)$' ]]; then
            options+=("$match[2]:${match[4]##*  }")
            values[$match[2]]=${match[3]# }
        elif [[ $line =~ '^  ([a-z][a-z_]*)  +(.*)$' ]]; then
            words_known+=("$match[1]:$match[2]")
        elif [[ -n $1 && $line =~ "^(Usage:|      ) leat $1 ([a-z]+) " ]]; then
            words_known+=("$match[2]")
        fi
    done
}

# Prints the values of members of JSON with these names. Values that a shell has to quote are left out.
_leat_values() { # NAME|NAME...
    tr -d '\n' | grep -oE "\"($1)\": *\"[A-Za-z0-9_.:@/+-]+\"" | cut -d '"' -f 4
}

# Offers what the queue has: ids and labels (tasks, dead), hosts (those with workers, and those that are drained without
# one) or lanes. Others choose these: what a shell has to quote is left out, and what looks like an option. An
# interactive shell takes no comments inside of the parentheses.
_leat_known() { # KIND [PREFIX]
    local answer
    local -a ask=(timeout 2 "$program" "${given[@]}") found
    found=("${(@f)$({
        case $1 in
        tasks) $ask list --limit 200 --json | _leat_values 'tid|id' ;;
        dead) $ask dead list --limit 200 --json | _leat_values 'tid|id' ;;
        hosts)
            answer=$($ask status --json | tr -d '\n ')
            print -r -- "$answer" | _leat_values host
            print -r -- "$answer" | grep -oE '"drained":\["[^]]+' | sed 's/.*\[//; s/"//g; s/,/\n/g'
            ;;
        lanes)
            $ask status --lanes 200 --json | _leat_values lane
            $ask list --limit 200 --json | _leat_values lane
            ;;
        esac
    } 2>/dev/null </dev/null | grep -xE '[A-Za-z0-9_.:@/+][A-Za-z0-9_.:@/+-]*' | sort -u)}")
    found=(${found:#})
    [[ -z $2 ]] || found=($2$^found)
    compadd -a found
}

_leat_queues() {
    local -a found=(${LEAT_CONFIG_DIR:-/etc/leat}/*.ini(N:t:r))
    compadd -a found
}

# Offers values where the word before wants one. Returns 1 where it does not.
_leat_value() { # OPTION
    case $1 in
    -q) _leat_queues ;;
    -c) _files ;;
    --lane) _leat_known lanes ;;
    --state) compadd ready running delayed retrying dead done ;;
    --by) compadd command lane worker ;;
    --cause)
        compadd exit signal killed oom timeout output-limit cannot-execute refused reported no-verdict check crash expired vanished damaged
        ;;
    *)
        case ${1:+${values[$1]}} in
        '') return 1 ;;
        QUEUE) _leat_queues ;;
        FILE) _files ;;
        DIR) _files -/ ;;
        esac
        ;;
    esac
    return 0
}

# Offers the keys that leat help ini knows: as KEY, or as SECTION.KEY if the word has a dot.
_leat_keys() {
    local line key section
    local -a found
    for line in "${(@f)$("$program" help ini 2>/dev/null | tail -n +2)}"; do
        key=${line%% *} section=${line%%.*}
        [[ $section != command ]] || section=command.NAME
        [[ $PREFIX == *.* ]] || key=${key#"$section."}
        found+=($key)
    done
    compadd -a found
}

# Offers what a command takes besides options.
_leat_operand() {
    case $command:$topic in
    help:ini) ((position > 1)) || _leat_keys ;;
    show:* | explain:* | attach:* | logs:* | wait:* | cancel:* | move:* | edit:* | now:*) _leat_known tasks ;;
    dead:show | dead:retry | dead:drop) _leat_known dead ;;
    drain:* | undrain:*) _leat_known hosts ;;
    destroy:) _leat_queues ;;
    conf:)
        if [[ $PREFIX == lane:* ]]; then
            _leat_known lanes lane:
        else
            _describe setting words_known
        fi
        ;;
    : | help:)
        words_known+=('help:Open the manual of a command')
        [[ -z $command ]] || words_known+=('ini:List keys of configuration files')
        _describe command words_known
        ;;
    *:) _describe command words_known ;;
    esac
}

_leat() {
    local program=${words[1]/#\~/$HOME} before='' command='' topic='' word
    local -i position=0 ended=0 i
    local -a words_known options common given
    local -A values

    _leat_read
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        case $word in
        --) ((ended)) || ended=$i ;;
        (-[qc]?*|(--queue|--config|--redis|--password-file)=*) given+=("${(Q)word}") ;;
        -*) ;;
        *)
            if [[ $before == -[qc] || -n $before && -n ${values[$before]} ]]; then
                # the queue that is asked
                case $before in
                -q | -c | --queue | --config | --redis | --password-file) given+=($before "${(Q)word/#\~\//$HOME/}") ;;
                esac
                before=''
                continue
            elif [[ -z $command ]]; then
                command=$word
                if [[ $command != help ]]; then
                    # no program's help for words that are none of its commands
                    [[ -n ${(M)words_known:#$command:*} ]] || return 1
                    common=("${(@)options:#--version:*}") # which cannot follow a command
                    _leat_read $command
                fi
            else
                topic=${topic:-$word}
                ((++position))
            fi
            ;;
        esac
        before=$word
    done

    if ((ended)); then
        if ((ended == CURRENT - 1)); then
            _command_names -e
        else
            _files
        fi
        return
    fi
    if [[ $PREFIX == --*=* ]]; then
        before=${PREFIX%%=*}
        compset -P '*='
        _leat_value $before
        return
    fi
    if _leat_value "$before"; then
        return
    elif [[ $PREFIX == -* ]]; then
        options+=("${common[@]}")
        _describe -o option options
    else
        _leat_operand
    fi
}

_leat "$@"
