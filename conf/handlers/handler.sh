#!/bin/sh
# A resident process for leat, to copy. RESIDENT PROCESSES in leatd(8) has the rules.
#
# [task]
# command = exec /usr/local/bin/handler.sh
# resident = yes
# batch_format = lines
#
# A shell starts a process for most of what it does, so this pays only if preparing the work takes long.

# Does one task. Another exit status than 0 is a failure, for which the rules of [retry] apply.
work() {
    [ -n "$1" ] || { echo 'there is no payload' >&2; return 65; }
    echo "got $1"
}

echo ready >&3
number=0
while IFS= read -r payload; do # until the end of the file
    number=$((number + 1))
    if (work "$payload") </dev/null 3>&-; then
        echo "$number ok" >&3
    else
        echo "$number exit $?" >&3
    fi
done
