/*
 * Numbers that the programs and the function library share. make writes each as a local into the
 * library, which is Lua: QUEUE_NAME becomes NAME.
 */
#ifndef LEAT_QUEUE_SHARED_LIMITS_H
#define LEAT_QUEUE_SHARED_LIMITS_H

#define QUEUE_PROTOCOL 1          /* increase it if arguments or replies change their meaning */
#define QUEUE_PRODUCER_KEYS 9     /* of a producer's call */
#define QUEUE_ALL_KEYS 15         /* of all other calls */
#define QUEUE_MAX_FIELDS 1000     /* pairs of a task; a Lua call takes about 8,000 values */
#define QUEUE_MAX_LANE 200        /* bytes of a lane's name */
#define QUEUE_MAX_KEY 1024        /* bytes of a label or a unique key */
#define QUEUE_CHUNK 1000          /* arguments of one unpack; tokens, tasks or items of one call */
#define QUEUE_MOVE_BYTES 16777216 /* a call that has read or moved so many bytes stops there */
#define QUEUE_PAGE 100            /* entries that one rarely used call moves or shows at most */
#define QUEUE_PREVIEW 200         /* bytes of a command in a list */
#define QUEUE_HISTORY_MOST 100000 /* ended tasks that a queue keeps at most */
#define QUEUE_HISTORY_RECORD 4096 /* bytes of the record of an ended task, at most */
#define QUEUE_WAKEUPS_KEPT 16     /* entries of the wakeup stream; older ones are gone */
#define QUEUE_FOLLOW_MOST_MS 600000 /* for which one call of leat_follow asks at most */
#define QUEUE_MIN_LEASE_MS 1000     /* a shorter lease is refused */
#define QUEUE_DEFAULT_LEASE_S 60    /* of a queue */
#define QUEUE_DEFAULT_BURST 1       /* of a rate: one task at a time */
#define QUEUE_DEFAULT_MAX_CRASHES 3 /* of a queue */

#endif
