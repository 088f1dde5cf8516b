#!/bin/sh
# Archives one file: what conf/archive.ini runs for each task.
#
# TASK_file      the task's field file: a file's name in ARCHIVE_FROM, without a folder
# ARCHIVE_FROM   from the configuration: where files come in
# ARCHIVE_TO     from the configuration: where NAME.gz and NAME.gz.sha256 go
#
# A task may run more than once (its worker can die at any line), so each step finds what an earlier attempt did:
# the result appears whole or not at all, is never overwritten, and the file goes only when the result is on disk.
# Exits with 65 when the task can never succeed (see permanent in archive.ini), else with 75.
set -u

permanent=65
later=75

never() {
    echo "$*" >&2
    exit $permanent
}

name=${TASK_file:-}
case $name in
'' | .* | */*) never "not the name of a file: '$name'" ;;
*'
'*) never 'a name of more than one line' ;;
esac
source=$ARCHIVE_FROM/$name
result=$ARCHIVE_TO/$name.gz
# no other execution of this task is alive, so what lies here is an earlier one's
unfinished=$ARCHIVE_TO/.$LEAT_TASK.unfinished
trap 'rm -f "$unfinished"' EXIT

# Makes $unfinished known as $1, in one step that never overwrites: a link can only be made to a free name.
publish() {
    sync "$unfinished" || exit $later
    if ! ln -T "$unfinished" "$1" 2>/dev/null && [ ! -e "$1" ]; then
        echo "cannot make $1" >&2
        exit $later
    fi
    rm -f "$unfinished" && sync "$ARCHIVE_TO" || exit $later
}

if [ -L "$source" ] || { [ -e "$source" ] && [ ! -f "$source" ]; }; then
    never "not a regular file: $name"
elif [ ! -e "$source" ] && [ ! -e "$result.sha256" ]; then
    never "no such file: $name"
fi

if [ -e "$source" ]; then
    if [ ! -e "$result" ]; then
        gzip -9 -n -c -- "$source" >"$unfinished" || exit $later
        publish "$result"
    fi
    # an earlier attempt's result is as good as ours; another file's of this name is not
    gzip -d -c -- "$result" | cmp -s -- - "$source" || never "the archive holds another $name"
fi
if [ ! -e "$result.sha256" ]; then
    (cd -- "$ARCHIVE_TO" && sha256sum -- "$name.gz") >"$unfinished" || exit $later
    publish "$result.sha256"
fi
rm -f -- "$source" || exit $later
cat -- "$result.sha256"
