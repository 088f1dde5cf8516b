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

# sign KEY FILE STREAM {NAME VALUE}: sets not_after, a day ahead, and signature. Values are text. While openssl runs,
# the users of this host can see the key: where that matters, leat enqueue signs.
netstring() {
    printf '%s:%s,' "$(printf %s "$1" | wc -c)" "$1"
}
octal() {
    od -An -v -t o1 | tr -d '\n' | sed 's/ /\\0/g'
}
sign() {
    key=$1 file=$2 stream=$3 nonce=$(openssl rand -hex 16) not_after=$(($(date +%s) + 86400))
    shift 3
    set -- "$@" not_after "$not_after"
    fields=$(
        while [ $# -gt 0 ]; do
            printf '%s %s\n' "$(printf %s "$1" | octal)" "$({ netstring "$1"; netstring "$2"; } | octal)"
            shift 2
        done | LC_ALL=C sort | cut -d ' ' -f 2
    )
    signature=leat1:$key:$nonce:$(
        {
            for part in leat1 "$key" "$nonce" "$stream"; do netstring "$part"; done
            printf %b "$(printf %s "$fields" | tr -d '\n')"
        } | openssl dgst -sha256 -mac HMAC -macopt "key:$(cat "$file")" -r | cut -d ' ' -f 1
    )
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

# one for workers that want signatures: [security] key_files = 2026a:FILE
if [ -n "${LEAT_KEY-}" ]; then
    sign 2026a "$LEAT_KEY" $queue command 'echo signed $TASK_SIZE >> done' SIZE 32 a '' payload '100% \n'
    redis XADD $queue '*' command 'echo signed $TASK_SIZE >> done' SIZE 32 a '' payload '100% \n' \
        not_after "$not_after" signature "$signature" >/dev/null
fi
