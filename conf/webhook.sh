#!/bin/sh
# Sends one task as an HTTP POST. webhook.ini runs this program for each task.
#
# stdin          payload of the task: the body
# WEBHOOK_URL    from the configuration: the URL for all tasks. If it is empty, the task's field url is used
# TASK_url       field url of the task
# TASK_type      field type of the task: media type of the body. Default: application/json
#
# Exits with 0 if the answer was 2xx, with 65 if no attempt can succeed (see permanent in webhook.ini), and with 75
# if a later attempt may succeed. The receiver sees the same Idempotency-Key in every attempt of a task, and in no other
# task: those of two queues may have the same id.
set -u

permanent=65
later=75

url=${WEBHOOK_URL:-${TASK_url:-}}
if [ -z "$url" ]; then
    echo "no URL: set the field url of the task, or WEBHOOK_URL" >&2
    exit $permanent
fi

# curl 8.13 and later takes @FILE for a list of URLs, shows them in its errors, and writes each answer into a file
case $url in
@*)
    echo "not a URL: it begins with @" >&2
    exit $permanent
    ;;
esac

# a line break would let the producer add headers
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
    --header "Content-Type: $type" --header "Idempotency-Key: $LEAT_QUEUE-$LEAT_TASK" --header 'Expect:' \
    --data-binary @- --write-out '\n%{http_code} %{exitcode}' \
    --url "$url" | tail -c 1000)

# the last line comes from --write-out; the lines before it are the end of the answer's body
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

# no answer: 1 means a scheme that is not allowed, 3 an invalid URL; other codes are network faults
case ${last#* } in
1 | 2 | 3) exit $permanent ;;
*) exit $later ;;
esac
