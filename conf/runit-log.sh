#!/bin/sh
# /etc/sv/leatd-QUEUE/log/run: writes the lines of a worker to files, which svlogd rotates. JSON has the time.
set -eu
# the log has what tasks write
umask 027
folder=${LEAT_LOGS:-/var/log}/$(basename "${PWD%/log}")
mkdir -p "$folder"
exec svlogd "$folder"
