#!/bin/sh
# A producer as a shell script with redis-cli. Where REDIS_SOCKET is not set, Redis is that of this host.
# shellcheck disable=SC2086,SC2016 # keys are several words; the task's shell is to see what is quoted
set -eu

redis() {
    redis-cli -e ${REDIS_SOCKET:+-s "$REDIS_SOCKET"} "$@"
}

queue=thumbnails
keys=$queue
for name in bell waiting delayed names conf stats lanes laned; do
    keys="$keys {$queue}:$name"
done

# enqueue [-x] {DUE COUNT {NAME VALUE}}: all or nothing; prints new or exists and the id of each task.
# With -x the last value is read from stdin.
enqueue() {
    from_stdin=
    if [ "$1" = -x ]; then
        from_stdin=-x
        shift
    fi
    if answer=$(redis $from_stdin FCALL leat_enqueue 9 $keys "$@" 2>&1 </dev/stdin); then
        echo "$answer" | sed 1d | paste -d ' ' - -
        return
    fi
    echo "$answer" >&2
    case $answer in
    REFUSED*) return 65 ;; # the task is wrong: do not repeat it
    FULL*) exit 75 ;;      # nothing was added: try again later
    *) exit 69 ;;
    esac
}

# one task, the plain way
redis XADD $queue '*' command 'echo plain $TASK_SIZE >> done' SIZE 640

# one that must not be there twice, in a lane, in half a second: the same answer twice
for _ in 1 2; do
    enqueue +500 3 command 'echo index >> done' unique index lane albums
done

# three in one step; the last one gets any bytes on its stdin
printf '\000\001\376\377\n' | enqueue -x \
    0 1 command 'echo two >> done' \
    0 2 command 'echo three $TASK_SIZE >> done' SIZE 64 \
    0 2 command 'cat > bytes' payload

# one that cannot be taken as it is
enqueue 0 2 command 'echo never >> done' result_ttl soon || echo "not taken: $?"
