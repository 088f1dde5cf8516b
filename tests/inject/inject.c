/* Preloaded into a program, makes the Nth call of a kind fail: once, several times, or from then
 * on; or kills the program right before or after its Nth call of any kind that other processes
 * can notice, also in a child that has not executed yet. A file that program and test share
 * ($INJECT_FILE, at least sizeof struct order) has the kind and the number, so that a test can
 * begin to count while the program runs. Programs that the program executes under another name
 * (leatd's guards) are left alone.
 *
 * Allocations are distinguished by their caller, because hiredis 0.14 and OpenSSL 3.0 abort in
 * some places if they get no memory. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <netdb.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/opensslv.h>

/* In the order of inject.py. */
enum kind {
    KIND_NONE,
    KIND_ALLOC,   /* malloc and related, by the program and most libraries */
    KIND_LIBRARY, /* the same by hiredis and libcrypto, and by libev if it does not use leatd's */
    KIND_FORK,    /* clone3, vfork, fork, posix_spawn */
    KIND_PIPE,    /* pipe2 */
    KIND_SEND,    /* write, send, sendto, sendmsg */
    KIND_READ,    /* read, recv, recvmsg of a socket */
    KIND_OPEN,    /* open, openat, opendir, fopen, inotify_init1 */
    KIND_PAYLOAD, /* memfd_create, pwrite */
    KIND_EPOLL,   /* epoll_ctl */
    KIND_TIMER,   /* timerfd_create, timerfd_settime */
    KIND_SOCKET,  /* socket, socketpair, connect */
    KIND_CHILD,   /* calls of a child before it executes: setsid, dup2, dup3, setrlimit, chdir */
    KIND_FILE,    /* fsync, rename, unlink, mkdir, ftruncate, fcntl */
    KIND_MAP,     /* mmap, mlock */
    KIND_ENDS,   /* kill, waitid, waitpid, wait4, close: they do not fail, but count for the next */
    KIND_BEFORE, /* any but allocations and looks at /proc, which nobody else notices: the program
                    dies before it */
    KIND_AFTER,  /* the same, after it */
};

/* Counts from 1. Calls number `first` to `last` fail. */
struct order {
    _Atomic uint64_t kind;
    _Atomic uint64_t first;
    _Atomic uint64_t last;
    _Atomic uint64_t count;  /* calls so far */
    _Atomic uint64_t failed; /* how many of them failed */
};

static struct order nobody;
/* Set in a function that allocates and was counted itself. Accessed without a call, which would
 * allocate. */
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));
static struct order *order = &nobody;
static pid_t program;           /* not a child that shares its memory */
static _Atomic bool dies_after; /* the call that is under way */

/* Addresses of the libraries of KIND_LIBRARY. */
static struct {
    uintptr_t begin, end;
} libraries[4];
static int library_count;

static int note_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (!strstr(info->dlpi_name, "libev.") && !strstr(info->dlpi_name, "libhiredis") &&
        !strstr(info->dlpi_name, "libcrypto.")) {
        return 0;
    }
    uintptr_t end = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && info->dlpi_addr + part->p_vaddr + part->p_memsz > end) {
            end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        }
    }
    libraries[library_count].begin = info->dlpi_addr;
    libraries[library_count++].end = end;
    return library_count == (int)(sizeof libraries / sizeof *libraries);
}

static enum kind allocation_by(const void *caller)
{
    for (int i = 0; i < library_count; i++) {
        if ((uintptr_t)caller >= libraries[i].begin && (uintptr_t)caller < libraries[i].end) {
            return KIND_LIBRARY;
        }
    }
    return KIND_ALLOC;
}

/* kill(2), without counting it. */
static int kill_plainly(pid_t pid, int signal)
{
    return (int)syscall(SYS_kill, pid, signal);
}

static void die(void)
{
    (void)kill_plainly(program, SIGKILL);
    while (getpid() == program) {
        pause();
    }
}

/* The program's Nth call of any kind. */
static void count(enum kind kind, enum kind when)
{
    if (atomic_exchange(&dies_after, false)) {
        die(); /* the call before did not return here: it duplicated the process */
    }
    if (kind == KIND_ALLOC || kind == KIND_LIBRARY ||
        !(when == KIND_BEFORE || when == KIND_AFTER) ||
        atomic_fetch_add(&order->count, 1) + 1 != atomic_load(&order->first)) {
        return;
    }
    atomic_fetch_add(&order->failed, 1);
    if (when == KIND_BEFORE) {
        die();
    }
    atomic_store(&dies_after, true);
}

/* The result of the call, if the program is to live. */
#define AFTER(call)                                                                                \
    ({                                                                                             \
        __typeof__(call) answer = (call);                                                          \
        if (atomic_exchange(&dies_after, false)) {                                                 \
            die();                                                                                 \
        }                                                                                          \
        answer;                                                                                    \
    })

/* True if this call fails; then errno is set. */
static bool fails(enum kind kind, int error)
{
    enum kind asked = (enum kind)atomic_load(&order->kind);
    if (inside || asked == KIND_NONE) {
        return false;
    }
    if (asked != kind) {
        count(kind, asked);
        return false;
    }
    uint64_t number = atomic_fetch_add(&order->count, 1) + 1;
    if (number < atomic_load(&order->first) || number > atomic_load(&order->last)) {
        return false;
    }
    atomic_fetch_add(&order->failed, 1);
    errno = error;
    return true;
}

#ifdef __x86_64__
static int find_clone3(struct dl_phdr_info *info, size_t size, void *context);
#endif

#define TEXT(number) #number
#define TEXT_OF(number) TEXT(number)

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    const char *path = getenv("INJECT_FILE");
    if (!path || argc < 1 || strcmp(argv[0], "leat-guard") == 0) {
        return;
    }
    /* leatd loads libcrypto later; loaded now, its addresses are known */
    static void *libcrypto;
    libcrypto = dlopen("libcrypto.so." TEXT_OF(OPENSSL_SHLIB_VERSION), RTLD_LAZY);
    if (!libcrypto) {
        abort();
    }
    dl_iterate_phdr(note_library, NULL);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *shared = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        abort();
    }
    close(fd);
    program = getpid();
    order = shared;
#ifdef __x86_64__
    dl_iterate_phdr(find_clone3, NULL);
#endif
}

/* The function that would be called without this file. */
#define REAL(result, name, ...)                                                                    \
    static result (*real)(__VA_ARGS__);                                                            \
    if (!real) {                                                                                   \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
    }

#define CALLER __builtin_return_address(0)

/* ---- memory ---- */

/* dlsym may allocate before it has found calloc: memory from here, which is never freed. */
static void *calloc_early(size_t size)
{
    static _Alignas(16) char room[65536];
    static size_t used;
    char *found = room + used;
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof room ? found : NULL;
}

void *malloc(size_t size)
{
    REAL(void *, malloc, size_t)
    return fails(allocation_by(CALLER), ENOMEM) ? NULL : real(size);
}

void *calloc(size_t count, size_t size)
{
    static bool looking;
    if (looking) {
        return calloc_early(count * size);
    }
    looking = true;
    REAL(void *, calloc, size_t, size_t)
    looking = false;
    return fails(allocation_by(CALLER), ENOMEM) ? NULL : real(count, size);
}

void *realloc(void *old, size_t size)
{
    REAL(void *, realloc, void *, size_t)
    return fails(allocation_by(CALLER), ENOMEM) ? NULL : real(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
    REAL(void *, reallocarray, void *, size_t, size_t)
    if (fails(allocation_by(CALLER), ENOMEM)) {
        return NULL;
    }
    inside = true;
    void *grown = real(old, count, size);
    inside = false;
    return grown;
}

char *strdup(const char *text)
{
    REAL(char *, strdup, const char *)
    if (fails(allocation_by(CALLER), ENOMEM)) {
        return NULL;
    }
    inside = true;
    char *copy = real(text);
    inside = false;
    return copy;
}

char *strndup(const char *text, size_t size)
{
    REAL(char *, strndup, const char *, size_t)
    if (fails(allocation_by(CALLER), ENOMEM)) {
        return NULL;
    }
    inside = true;
    char *copy = real(text, size);
    inside = false;
    return copy;
}

/* ---- users and hosts: glibc 2.36 crashes if it gets no memory for the table of its name
 * services (nss_database.c, from the first of these calls). So each of them counts as one
 * allocation, and its own allocations never fail. ---- */

#define LOOKUP(call)                                                                               \
    if (fails(KIND_ALLOC, ENOMEM)) {                                                               \
        return ENOMEM;                                                                             \
    }                                                                                              \
    inside = true;                                                                                 \
    int result = call;                                                                             \
    inside = false;                                                                                \
    return result;

int getpwnam_r(const char *name, struct passwd *user, char *text, size_t size,
               struct passwd **found)
{
    REAL(int, getpwnam_r, const char *, struct passwd *, char *, size_t, struct passwd **)
    LOOKUP(real(name, user, text, size, found))
}

int getpwuid_r(uid_t uid, struct passwd *user, char *text, size_t size, struct passwd **found)
{
    REAL(int, getpwuid_r, uid_t, struct passwd *, char *, size_t, struct passwd **)
    LOOKUP(real(uid, user, text, size, found))
}

int getgrnam_r(const char *name, struct group *group, char *text, size_t size, struct group **found)
{
    REAL(int, getgrnam_r, const char *, struct group *, char *, size_t, struct group **)
    LOOKUP(real(name, group, text, size, found))
}

int getgrgid_r(gid_t gid, struct group *group, char *text, size_t size, struct group **found)
{
    REAL(int, getgrgid_r, gid_t, struct group *, char *, size_t, struct group **)
    LOOKUP(real(gid, group, text, size, found))
}

int getgrouplist(const char *user, gid_t group, gid_t *groups, int *count)
{
    REAL(int, getgrouplist, const char *, gid_t, gid_t *, int *)
    inside = true;
    int result = real(user, group, groups, count);
    inside = false;
    return result;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    REAL(int, getaddrinfo, const char *, const char *, const struct addrinfo *, struct addrinfo **)
    if (fails(KIND_ALLOC, ENOMEM)) {
        return EAI_MEMORY;
    }
    inside = true;
    int result = real(host, service, hints, found);
    inside = false;
    return result;
}

void *mmap64(void *where, size_t size, int access, int flags, int fd, off64_t offset)
{
    REAL(void *, mmap64, void *, size_t, int, int, int, off64_t)
    return fails(KIND_MAP, ENOMEM) ? MAP_FAILED
                                   : AFTER(real(where, size, access, flags, fd, offset));
}

int mlock(const void *where, size_t size)
{
    REAL(int, mlock, const void *, size_t)
    return fails(KIND_MAP, ENOMEM) ? -1 : AFTER(real(where, size));
}

/* ---- processes ---- */

pid_t fork(void)
{
    REAL(pid_t, fork, void)
    return fails(KIND_FORK, EAGAIN) ? -1 : real();
}

/* Must be left before the process is duplicated: the compiler must jump to the real one, which
 * it does if it optimises and does not know the target. Looked up beforehand, because a call
 * would need a frame. */
static pid_t (*real_vfork)(void);

__attribute__((constructor)) static void find_vfork(void)
{
    *(void **)&real_vfork = dlsym(RTLD_NEXT, "vfork");
}

pid_t vfork(void)
{
    if (fails(KIND_FORK, EAGAIN)) {
        return -1;
    }
    return real_vfork();
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    REAL(int, posix_spawn, pid_t *, const char *, const posix_spawn_file_actions_t *,
         const posix_spawnattr_t *, char *const *, char *const *)
    return fails(KIND_FORK, EAGAIN)
               ? EAGAIN
               : AFTER(real(pid, path, actions, attributes, argv, environment));
}

/* leatd makes this call itself (spawn_vfork in src/exec/start/spawn.c), with these bytes; they
 * are replaced by a jump to code that counts first. Its stack is unchanged, for the reason given
 * there. It does without what shadow stacks need. */
#ifdef __x86_64__
static const unsigned char clone3_call[] = {0x41, 0x58, 0xb8, 0xb3, 0x01, 0x00,
                                            0x00, 0x0f, 0x05, 0x48, 0x85, 0xc0};

__attribute__((used, visibility("hidden"))) int clone3_fails(void)
{
    return fails(KIND_FORK, EAGAIN);
}

void counted_clone3(void) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
        ".hidden counted_clone3\n"
        "counted_clone3:\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    sub $8, %rsp\n"
        "    call clone3_fails\n"
        "    add $8, %rsp\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    test %eax, %eax\n"
        "    jne 1f\n"
        "    pop %r8\n"
        "    mov $435, %eax\n"
        "    syscall\n"
        "    push %r8\n"
        "    ret\n"
        "1:  mov $-11, %rax\n" /* EAGAIN */
        "    ret\n"
        ".popsection\n");

/* The bytes have room for a short jump to a page near them, and from there on. */
static void divert(unsigned char *call)
{
    unsigned char far[] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3}; /* r11 */
    void (*to)(void) = counted_clone3;
    memcpy(far + 2, &to, sizeof to);
    const size_t page = 4096, jump = 5;
    unsigned char *begin = call - (uintptr_t)call % page, *near = MAP_FAILED;
    const size_t size = (size_t)(call + jump - begin);
    for (size_t away = 1 << 20; near == MAP_FAILED && away < 1 << 30; away += 1 << 20) {
        near = mmap(begin - away, page, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    if (near == MAP_FAILED || mprotect(begin, size, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        abort();
    }
    memcpy(near, far, sizeof far);
    int32_t distance = (int32_t)(near - (call + jump));
    call[0] = 0xe9;
    memcpy(call + 1, &distance, sizeof distance);
    if (mprotect(begin, size, PROT_READ | PROT_EXEC)) {
        abort();
    }
}

/* The program itself comes first. */
static int find_clone3(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            unsigned char *found = memmem((void *)(info->dlpi_addr + part->p_vaddr), part->p_memsz,
                                          clone3_call, sizeof clone3_call);
            if (found) {
                divert(found);
            }
        }
    }
    return 1;
}
#endif

int kill(pid_t pid, int signal)
{
    (void)fails(KIND_ENDS, 0);
    return AFTER(kill_plainly(pid, signal));
}

int waitid(idtype_t what, id_t id, siginfo_t *found, int options)
{
    REAL(int, waitid, idtype_t, id_t, siginfo_t *, int)
    (void)fails(KIND_ENDS, 0);
    return AFTER(real(what, id, found, options));
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    REAL(pid_t, waitpid, pid_t, int *, int)
    (void)fails(KIND_ENDS, 0);
    return AFTER(real(pid, status, options));
}

pid_t wait4(pid_t pid, int *status, int options, struct rusage *used)
{
    REAL(pid_t, wait4, pid_t, int *, int, struct rusage *)
    (void)fails(KIND_ENDS, 0);
    return AFTER(real(pid, status, options, used));
}

pid_t setsid(void)
{
    REAL(pid_t, setsid, void)
    return fails(KIND_CHILD, EPERM) ? -1 : AFTER(real());
}

int chdir(const char *path)
{
    REAL(int, chdir, const char *)
    return fails(KIND_CHILD, EIO) ? -1 : AFTER(real(path));
}

int dup2(int from, int to)
{
    REAL(int, dup2, int, int)
    return fails(KIND_CHILD, EMFILE) ? -1 : AFTER(real(from, to));
}

int dup3(int from, int to, int flags)
{
    REAL(int, dup3, int, int, int)
    return fails(KIND_CHILD, EMFILE) ? -1 : AFTER(real(from, to, flags));
}

int setrlimit64(__rlimit_resource_t what, const struct rlimit64 *limit)
{
    REAL(int, setrlimit64, __rlimit_resource_t, const struct rlimit64 *)
    return fails(KIND_CHILD, EPERM) ? -1 : AFTER(real(what, limit));
}

/* ---- descriptors ---- */

int pipe2(int ends[2], int flags)
{
    REAL(int, pipe2, int *, int)
    return fails(KIND_PIPE, EMFILE) ? -1 : AFTER(real(ends, flags));
}

/* Descriptors of /proc: a scan opens as many as there are processes on the machine. */
enum { LOOKS = 1024 };
static bool looks[LOOKS];

static bool is_look(int fd)
{
    return fd >= 0 && fd < LOOKS && looks[fd];
}

static int note_look(int fd)
{
    if (fd >= 0 && fd < LOOKS) {
        looks[fd] = true;
    }
    return fd;
}

static bool dies_at_calls(void)
{
    uint64_t asked = atomic_load(&order->kind);
    return asked == KIND_BEFORE || asked == KIND_AFTER;
}

int close(int fd)
{
    REAL(int, close, int)
    if (is_look(fd)) {
        looks[fd] = false;
        return real(fd);
    }
    (void)fails(KIND_ENDS, 0);
    return AFTER(real(fd));
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    REAL(int, open64, const char *, int, ...)
    if (dies_at_calls() && strncmp(path, "/proc", strlen("/proc")) == 0) {
        return note_look(real(path, flags, mode));
    }
    return fails(KIND_OPEN, EMFILE) ? -1 : AFTER(real(path, flags, mode));
}

int openat64(int folder, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    REAL(int, openat64, int, const char *, int, ...)
    return fails(KIND_OPEN, EMFILE) ? -1 : AFTER(real(folder, path, flags, mode));
}

int inotify_init1(int flags)
{
    REAL(int, inotify_init1, int)
    return fails(KIND_OPEN, EMFILE) ? -1 : AFTER(real(flags));
}

void *opendir(const char *path)
{
    REAL(void *, opendir, const char *)
    return fails(KIND_OPEN, EMFILE) ? NULL : AFTER(real(path));
}

void *fopen64(const char *path, const char *mode)
{
    REAL(void *, fopen64, const char *, const char *)
    return fails(KIND_OPEN, EMFILE) ? NULL : AFTER(real(path, mode));
}

int memfd_create(const char *name, unsigned flags)
{
    REAL(int, memfd_create, const char *, unsigned)
    return fails(KIND_PAYLOAD, EMFILE) ? -1 : AFTER(real(name, flags));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)
    return fails(KIND_PAYLOAD, ENOSPC) ? -1 : AFTER(real(fd, data, size, offset));
}

int epoll_ctl(int fd, int what, int of, struct epoll_event *event)
{
    REAL(int, epoll_ctl, int, int, int, struct epoll_event *)
    return fails(KIND_EPOLL, ENOMEM) ? -1 : AFTER(real(fd, what, of, event));
}

int timerfd_create(int clock, int flags)
{
    REAL(int, timerfd_create, int, int)
    return fails(KIND_TIMER, EMFILE) ? -1 : AFTER(real(clock, flags));
}

int timerfd_settime(int fd, int flags, const struct itimerspec *fresh, struct itimerspec *old)
{
    REAL(int, timerfd_settime, int, int, const struct itimerspec *, struct itimerspec *)
    return fails(KIND_TIMER, EINVAL) ? -1 : AFTER(real(fd, flags, fresh, old));
}

int socket(int family, int type, int protocol)
{
    REAL(int, socket, int, int, int)
    return fails(KIND_SOCKET, EMFILE) ? -1 : AFTER(real(family, type, protocol));
}

int socketpair(int family, int type, int protocol, int ends[2])
{
    REAL(int, socketpair, int, int, int, int *)
    return fails(KIND_SOCKET, EMFILE) ? -1 : AFTER(real(family, type, protocol, ends));
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    REAL(int, connect, int, const struct sockaddr *, socklen_t)
    return fails(KIND_SOCKET, ECONNREFUSED) ? -1 : AFTER(real(fd, address, size));
}

/* ---- bytes ---- */

/* A pipe can be read to its end. */
static bool is_socket(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode);
}

/* The wakeup of a loop by another thread, which never fails: libev would not try again. */
static bool is_eventfd(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && (found.st_mode & S_IFMT) == 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(ssize_t, write, int, const void *, size_t)
    return !is_eventfd(fd) && fails(KIND_SEND, EIO) ? -1 : AFTER(real(fd, data, size));
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    REAL(ssize_t, send, int, const void *, size_t, int)
    return fails(KIND_SEND, EPIPE) ? -1 : AFTER(real(fd, data, size, flags));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(ssize_t, sendmsg, int, const struct msghdr *, int)
    return fails(KIND_SEND, ENOBUFS) ? -1 : AFTER(real(fd, message, flags));
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *address,
               socklen_t length)
{
    REAL(ssize_t, sendto, int, const void *, size_t, int, const struct sockaddr *, socklen_t)
    return fails(KIND_SEND, ENOBUFS) ? -1 : AFTER(real(fd, data, size, flags, address, length));
}

ssize_t read(int fd, void *data, size_t size)
{
    REAL(ssize_t, read, int, void *, size_t)
    return is_socket(fd) && fails(KIND_READ, ECONNRESET) ? -1 : AFTER(real(fd, data, size));
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    REAL(ssize_t, recv, int, void *, size_t, int)
    return fails(KIND_READ, ECONNRESET) ? -1 : AFTER(real(fd, data, size, flags));
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    REAL(ssize_t, recvmsg, int, struct msghdr *, int)
    return fails(KIND_READ, ECONNRESET) ? -1 : AFTER(real(fd, message, flags));
}

/* ---- files ---- */

int fsync(int fd)
{
    REAL(int, fsync, int)
    return fails(KIND_FILE, EIO) ? -1 : AFTER(real(fd));
}

int rename(const char *from, const char *to)
{
    REAL(int, rename, const char *, const char *)
    return fails(KIND_FILE, EIO) ? -1 : AFTER(real(from, to));
}

int unlink(const char *path)
{
    REAL(int, unlink, const char *)
    return fails(KIND_FILE, EIO) ? -1 : AFTER(real(path));
}

int mkdir(const char *path, mode_t mode)
{
    REAL(int, mkdir, const char *, mode_t)
    return fails(KIND_FILE, ENOSPC) ? -1 : AFTER(real(path, mode));
}

int ftruncate64(int fd, off64_t size)
{
    REAL(int, ftruncate64, int, off64_t)
    return fails(KIND_FILE, ENOSPC) ? -1 : AFTER(real(fd, size));
}

int fcntl64(int fd, int what, ...)
{
    va_list rest;
    va_start(rest, what);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    REAL(int, fcntl64, int, int, ...)
    return fails(KIND_FILE, EMFILE) ? -1 : AFTER(real(fd, what, argument));
}
