/* Finds paths on remote file systems, by the table of mounts. */
#include "base/process/mounts.h"

#include <fcntl.h>
#include <mntent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/descriptor.h"

static const char mounts_path[] = "/proc/self/mounts";

/* autofs may mount any of the others. All FUSE types count, since their server is a program. */
static const char *const remote_types[] = {
    "9p",   "afs",      "autofs", "beegfs", "ceph",      "cifs",   "coda",
    "fuse", "gfs2",     "gpfs",   "kafs",   "glusterfs", "lustre", "ncpfs",
    "nfs",  "orangefs", "panfs",  "smb",    "ocfs2",     "vboxsf", "virtiofs",
};

/* Compares only the beginning, which includes nfs4, smb3, fuseblk and fuse.sshfs. */
static bool is_remote_type(const char *type)
{
    for (size_t i = 0; i < sizeof remote_types / sizeof *remote_types; i++) {
        if (strncmp(type, remote_types[i], strlen(remote_types[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the length of the mount point if the path is on or below it, otherwise 0. */
static size_t match(const char *mount, const char *path)
{
    size_t size = strlen(mount);
    if (size == 1 && mount[0] == '/') {
        return 1;
    }
    return strncmp(mount, path, size) == 0 && (path[size] == '/' || path[size] == '\0') ? size : 0;
}

/* Looks only at the text of the path. It belongs to the longest matching mount point, and to the
 * last of equal ones. */
static bool is_below_remote(const char *path)
{
    char text[8192];
    struct mntent entry;
    size_t longest = 0;
    bool remote = false;
    FILE *table = setmntent(mounts_path, "re");
    while (table && getmntent_r(table, &entry, text, (int)sizeof text)) {
        size_t size = match(entry.mnt_dir, path);
        if (size > 0 && size >= longest) {
            longest = size;
            remote = is_remote_type(entry.mnt_type);
        }
    }
    if (table) {
        endmntent(table);
    }
    return remote;
}

bool mounts_is_remote(const char *path)
{
    if (is_below_remote(path)) {
        return true;
    }

    /* a path that does not exist cannot hang */
    char *real = realpath(path, NULL);
    bool remote = real && is_below_remote(real);
    free(real);
    return remote;
}

int mounts_open(void)
{
    return descriptor_out_of_the_way(open(mounts_path, O_RDONLY | O_CLOEXEC));
}
