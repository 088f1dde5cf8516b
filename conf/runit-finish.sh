#!/bin/sh
# /etc/sv/leatd-QUEUE/finish: runit starts a worker again that has failed, except if a person has to fix it first: 77
# means wrong credentials or rights, and 78 a wrong configuration. $1 is the exit status.
case $1 in
77 | 78) exec sv down . ;;
esac
