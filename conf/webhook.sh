#!/bin/sh
# Sends one task as an HTTP POST: what conf/webhook.ini runs for each.
#
# stdin          the task's payload: the body
# WEBHOOK_URL    from the configuration: where all tasks go. Empty: where each task's field url says
# TASK_url       the task's field url
# TASK_type      the task's field type: the body's media type, application/json unless said
#
# Exits with 0 when the answer was 2xx, 65 when it would never be (see permanent in webhook.ini), and 75 when a
# later attempt may fare better. The receiver sees the same Idempotency-Key for every attempt at a task.
set -u

permanent=65
later=75

# a line break would smuggle in a header of the producer's own
type=${TASK_type:-application/json}
case $type in
*[!A-Za-z0-9/.+\;=\ _-]*)
    echo "not a media type" >&2
    exit $permanent
    ;;
esac

# --disable (it must come first): no .curlrc; --globoff: one URL is one request; redirects are not followed
answer=$(curl --disable --silent --show-error --globoff --proto '=http,https' \
    --connect-timeout 10 --max-time 50 \
    --header "Content-Type: $type" --header "Idempotency-Key: $LEAT_TASK" --header 'Expect:' \
    --data-binary @- --write-out '\n%{http_code} %{exitcode}' \
    --url "${WEBHOOK_URL:-${TASK_url:-}}" | tail -c 1000)

# the last line is ours, what stands before it is the end of the answer's body
last=$(printf '%s' "$answer" | tail -n 1)
status=${last%% *}
printf '%s\n' "$answer" | sed '$d;/^$/d'

case $status in
2??)
    exit 0
    ;;
408 | 425 | 429 | 5??)
    echo "status $status" >&2
    exit $later
    ;;
[34]??)
    echo "status $status" >&2
    exit $permanent
    ;;
esac

# no answer: 1 is a scheme that is not allowed, 3 a URL that is none; all else is the network
case ${last#* } in
1 | 2 | 3) exit $permanent ;;
*) exit $later ;;
esac
