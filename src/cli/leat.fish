# Fish completion of leat. It does what leat.bash does, and shows descriptions: commands, options and what takes a
# value are read from leat's own help; ids, labels, hosts and lanes are asked for.

# Prints a line for each option and word of a help: its kind, its name, what its value is called, its description.
function __leat_read # PROGRAM [COMMAND]
    set -l usage '^$'
    if set -q argv[2]
        set usage "^(?:Usage:|      ) leat $argv[2] ([a-z]+) "
    end
    for line in ($argv[1] $argv[2..] --help 2>/dev/null)
        if set -l found (string match -rg '^  (?:-[A-Za-z], )?(--[a-z][a-z-]*)((?: [A-Z]+)?)(.*)$' -- $line)
            printf 'option\t%s\t%s\t%s\n' $found[1] (string trim -- $found[2]) (string replace -r '^.*  ' '' -- $found[3])
        else if set -l found (string match -rg '^  ([a-z][a-z_]*)  +(.*)$' -- $line)
            printf 'word\t%s\t\t%s\n' $found[1] $found[2]
        else if set -l found (string match -rg $usage -- $line)
            printf 'word\t%s\t\t\n' $found[1]
        end
    end
end

# Offers the lines of __leat_read that are of this kind, with their descriptions.
function __leat_offer # KIND LINE...
    for line in $argv[2..]
        set -l part (string split \t -- $line)
        if test "$part[1]" = $argv[1]
            printf '%s\t%s\n' $part[2] $part[4]
        end
    end
end

# Prints what the value of an option is called, or nothing if it takes none.
function __leat_takes # OPTION LINE...
    for line in $argv[2..]
        set -l part (string split \t -- $line)
        if test "$part[2]" = "$argv[1]"
            echo $part[3]
            return
        end
    end
end

# Prints the values of members of JSON with these names. Values that a shell has to quote are left out.
function __leat_values # NAME|NAME...
    tr -d '\n' | grep -oE "\"($argv[1])\": *\"[A-Za-z0-9_.:@/+-]+\"" | cut -d '"' -f 4
end

# Prints what the queue has: ids and labels (tasks, dead), hosts or lanes. Others choose these: what a shell has to
# quote is left out, and what looks like an option.
function __leat_known # KIND PROGRAM [OPTION]...
    set -l ask timeout 2 $argv[2..]
    begin
        switch $argv[1]
            case tasks
                $ask list --limit 200 --json | __leat_values 'tid|id'
            case dead
                $ask dead list --limit 200 --json | __leat_values 'tid|id'
            case hosts # those with workers, and those that are drained without one
                set -l answer ($ask status --json 2>/dev/null | tr -d '\n ')
                echo $answer | __leat_values host
                echo $answer | grep -oE '"drained":\["[^]]+' | sed 's/.*\[//; s/"//g; s/,/\n/g'
            case lanes
                $ask status --lanes 200 --json | __leat_values lane
                $ask list --limit 200 --json | __leat_values lane
        end
    end 2>/dev/null </dev/null | grep -xE '[A-Za-z0-9_.:@/+][A-Za-z0-9_.:@/+-]*' | sort -u
end

function __leat_queues
    set -l folder /etc/leat
    if set -q LEAT_CONFIG_DIR
        set folder $LEAT_CONFIG_DIR
    end
    for path in $folder/*.ini
        string replace -r '.*/(.*)\.ini$' '$1' -- $path
    end
end

# Offers files. __fish_complete_path knows no ~; for a command without a name, fish offers files, and understands it.
function __leat_files # PREFIX
    complete -C "'' $argv[1]"
end

# Offers values where the word before wants one. Returns 1 where it does not.
function __leat_value # OPTION PREFIX WHAT-IT-TAKES PROGRAM [OPTION]...
    switch $argv[1]
        case -q
            __leat_queues
        case -c
            __leat_files $argv[2]
        case --lane
            __leat_known lanes $argv[4..]
        case --state
            printf '%s\n' ready running delayed retrying dead done
        case --by
            printf '%s\n' command lane worker
        case --cause
            printf '%s\n' exit signal killed oom timeout output-limit cannot-execute refused reported no-verdict check crash expired vanished damaged
        case '*'
            switch "$argv[3]"
                case ''
                    return 1
                case QUEUE
                    __leat_queues
                case FILE
                    __leat_files $argv[2]
                case DIR
                    __fish_complete_directories $argv[2]
            end
    end
    return 0
end

# Offers the keys that leat help ini knows: as KEY, or as SECTION.KEY if the word has a dot.
function __leat_keys # PROGRAM PREFIX
    for line in ($argv[1] help ini 2>/dev/null)[2..]
        set -l key (string replace -r ' .*' '' -- $line)
        if not string match -q '*.*' -- $argv[2]
            set key (string replace -r '^(command\.NAME|[^.]*)\.' '' -- $key)
        end
        echo $key
    end
end

function __leat
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $typed[1])
    set -l asked $program
    set -l help (__leat_read $program)
    set -l position 0
    set -l before ''
    set -l command ''
    set -l topic ''
    set -l ended 0

    for i in (seq 2 (count $typed))
        set -l word $typed[$i]
        switch $word
            case --
                test $ended -gt 0; or set ended $i
            case -q -c
            case '-q*' '-c*' '--queue=*' '--config=*' '--redis=*' '--password-file=*'
                set -a asked $word
            case '-*'
            case '*'
                if contains -- $before -q -c; or test -n "$before" -a -n "$(__leat_takes "$before" $help)"
                    # the queue that is asked
                    if contains -- $before -q -c --queue --config --redis --password-file
                        set -a asked $before (string replace -r '^~/' "$HOME/" -- $word)
                    end
                    set before ''
                    continue
                else if test -z "$command"
                    set command $word
                    if test $command != help
                        # no program's help for words that are none of its commands
                        string match -q -- "word"\t"$command"\t"*" $help; or return
                        # --version cannot follow a command
                        set -l common (string match -- 'option*' $help | string match -v -- option\t--version\t'*')
                        set help (__leat_read $program $command) $common
                    end
                else
                    test -n "$topic"; or set topic $word
                    set position (math $position + 1)
                end
        end
        set before $word
    end

    if test $ended -gt 0
        if test $ended -eq (count $typed)
            __fish_complete_command
        else
            __leat_files $current
        end
        return
    end
    if set -l part (string match -rg '^(--[a-z-]+=)(.*)' -- $current)
        # fish wants the whole word
        set -l option (string trim -rc = -- $part[1])
        __leat_value $option "$part[2]" "$(__leat_takes $option $help)" $asked | string replace -r '^' -- $part[1]
        return
    end
    if __leat_value "$before" "$current" "$(__leat_takes "$before" $help)" $asked
        return
    end
    if string match -q -- '-*' $current
        __leat_offer option $help
        return
    end
    switch $command:$topic
        case help:ini
            test $position -gt 1; or __leat_keys $program $current
        case 'show:*' 'explain:*' 'attach:*' 'logs:*' 'wait:*' 'cancel:*' 'move:*' 'edit:*' 'now:*'
            __leat_known tasks $asked
        case dead:show dead:retry dead:drop
            __leat_known dead $asked
        case 'drain:*' 'undrain:*'
            __leat_known hosts $asked
        case destroy:
            __leat_queues
        case conf:
            if string match -q 'lane:*' -- $current
                __leat_known lanes $asked | string replace -r '^' lane:
            else
                __leat_offer word $help
            end
        case : help:
            __leat_offer word $help
            printf 'help\tOpen the manual of a command\n'
            test -z "$command"; or printf 'ini\tList keys of configuration files\n'
        case '*:'
            __leat_offer word $help
    end
end

complete -c leat -f -a '(__leat)'
