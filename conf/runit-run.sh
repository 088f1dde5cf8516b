#!/bin/sh
# A worker under runit. For the queue thumbnails, as root:
#   useradd --system --create-home --home-dir /var/lib/leat leat    (the Debian package has made it)
#   mkdir -p /etc/sv/leatd-thumbnails/log
#   cp runit-run.sh /etc/sv/leatd-thumbnails/run
#   cp runit-finish.sh /etc/sv/leatd-thumbnails/finish
#   cp runit-log.sh /etc/sv/leatd-thumbnails/log/run
#   ln -s /etc/sv/leatd-thumbnails /etc/service
# In /etc/leat/thumbnails.ini, set [log] target = json. To stop it, give its tasks time to finish:
#   sv -w 120 stop leatd-thumbnails
set -eu
exec 2>&1

user=${LEAT_USER:-leat}
queue=${PWD##*/leatd-}
# the files of workers outlive them, so that the next one knows which tasks are dead
export RUNTIME_DIRECTORY="${RUNTIME_DIRECTORY:-/run/leat}"
mkdir -p "$RUNTIME_DIRECTORY"
chown "$user:" "$RUNTIME_DIRECTORY"
umask 027
# tasks get those of leatd, and without them those of its user
unset HOME USER LOGNAME
# runsv sends SIGTERM to leatd alone, so running tasks may finish
exec chpst -u "$user" leatd -c "${LEAT_CONFIG_DIR:-/etc/leat}/$queue.ini"
