#!/bin/sh
# Archives one file. archive.ini runs this program for each task.
#
# TASK_file      field file of the task: name of a file in ARCHIVE_FROM, without a folder
# ARCHIVE_FROM   from the configuration: folder of incoming files
# ARCHIVE_TO     from the configuration: folder for NAME.gz and NAME.gz.sha256
#
# A task may run more than once, since its worker can die at any line. Each step therefore detects what an earlier
# attempt did. The result appears whole or not at all and is never overwritten; the file is removed only when the
# result is on disk. Exits with 65 if the task can never succeed (see permanent in archive.ini), otherwise with 75.
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
# no other attempt of this task runs now, so an existing file is from an earlier one
unfinished=$ARCHIVE_TO/.$LEAT_QUEUE-$LEAT_TASK.unfinished
trap 'rm -f "$unfinished"' EXIT

# Publishes $unfinished as $1 in one step. ln never overwrites: it fails if the name exists.
publish() {
    sync "$unfinished" || exit $later
    if ! ln -T "$unfinished" "$1" 2>/dev/null && [ ! -e "$1" ]; then
        echo "cannot make $1" >&2
        exit $later
    fi
    rm -f "$unfinished" && sync "$ARCHIVE_TO" || exit $later
}

# Whether the file of that name is the one that was opened. Whoever may write to the folder can put a link or another
# file there at any time.
is_opened() {
    [ "$(stat -c %d:%i -- "$source")" = "$(stat -L -c %d:%i /dev/fd/3)" ]
}

if [ -L "$source" ] || { [ -e "$source" ] && [ ! -f "$source" ]; }; then
    never "not a regular file: $name"
elif [ ! -e "$source" ] && [ ! -e "$result.sha256" ]; then
    never "no such file: $name"
fi

if [ -e "$source" ]; then
    # only what was opened here is read, and only if it is not by way of a link
    command exec 3<"$source" || exit $later
    is_opened || never "not a regular file: $name"
    if [ ! -e "$result" ]; then
        gzip -9 -n -c </dev/fd/3 >"$unfinished" || exit $later
        publish "$result"
    fi
    # keep the result of an earlier attempt, but not the archive of another file with this name
    gzip -d -c -- "$result" | cmp -s -- - /dev/fd/3 || never "the archive holds another $name"
fi
if [ ! -e "$result.sha256" ]; then
    (cd -- "$ARCHIVE_TO" && sha256sum -- "$name.gz") >"$unfinished" || exit $later
    publish "$result.sha256"
fi
if [ -e "$source" ]; then
    is_opened || never "the archive holds another $name"
    rm -f -- "$source" || exit $later
fi
cat -- "$result.sha256"
