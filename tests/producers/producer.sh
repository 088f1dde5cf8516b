#!/bin/sh
# A producer as a shell script with redis-cli, for the Redis of this host.
# shellcheck disable=SC2016 # variables in single quotes are for the task's shell
set -eu

# redis ARGUMENT...: calls leat_add or leat_add_many; prints new or exists, and the id, of each task
redis() {
    if answer=$(redis-cli -e "$@" 2>&1); then
        echo "$answer" | paste -d ' ' - -
        return
    fi
    echo "$answer" >&2
    case $answer in
    REFUSED*) return 65 ;; # the task is wrong: do not repeat the call
    FULL*) exit 75 ;;      # nothing was added: try again later
    *) exit 69 ;;
    esac
}

# sign KEY FILE STREAM {NAME VALUE}: sets not_after, one day ahead, and signature. Values are text, and FILE is one
# line of it. While openssl runs, the users of this host can see the key. If that matters, use leat enqueue, which
# signs by itself.
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

# one task, by a plain XADD
redis-cli -e XADD thumbnails '*' command 'echo plain $TASK_SIZE >> done' SIZE 640 || exit 69

# at most one with that key, in a lane, in half a second: both calls answer the same id
for _ in 1 2; do
    redis FCALL leat_add 1 thumbnails command 'echo index >> done' unique index lane albums delay 500ms
done

# two tasks, both or none
redis FCALL leat_add_many 1 thumbnails '[
    {"command": "echo two >> done"},
    {"command": "echo three $TASK_SIZE >> done", "SIZE": 64}
]'

# any bytes for the task's stdin
printf '\000\001\376\377\n' | redis -x FCALL leat_add 1 thumbnails command 'cat > bytes' payload

# a task that is refused
redis FCALL leat_add 1 thumbnails command 'echo never >> done' result_ttl soon || echo "refused: $?"

# a signed task, for workers with [security] key_files = 2026a:FILE
if [ -n "${LEAT_KEY-}" ]; then
    sign 2026a "$LEAT_KEY" thumbnails command 'echo signed $TASK_SIZE >> done' SIZE 32 a '' payload '100% \n'
    redis FCALL leat_add 1 thumbnails command 'echo signed $TASK_SIZE >> done' SIZE 32 a '' payload '100% \n' \
        not_after "$not_after" signature "$signature" >/dev/null
fi
