"""Filters of system calls, so that a program finds what an older or a restricted kernel offers."""
import ctypes
import errno

ALLOW, ERRNO = 0x7fff0000, 0x00050000
EQUAL = 4
PR_SET_SECCOMP = 22


class Argument(ctypes.Structure):
    """struct scmp_arg_cmp"""
    _fields_ = [('number', ctypes.c_uint), ('compare', ctypes.c_int), ('value', ctypes.c_uint64),
                ('unused', ctypes.c_uint64)]


def forbid(calls):
    """Makes system calls fail in this process and all that it starts: {name: errno} or {(name, value of its first
    argument): errno}. For preexec_fn."""
    library = ctypes.CDLL('libseccomp.so.2')
    library.seccomp_init.restype = ctypes.c_void_p
    filter_of = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    for call, error in calls.items():
        name, conditions = (call, []) if isinstance(call, str) else (call[0], [Argument(0, EQUAL, call[1], 0)])
        result = library.seccomp_rule_add_array(
            filter_of, ctypes.c_uint32(ERRNO | error), library.seccomp_syscall_resolve_name(name.encode()),
            ctypes.c_uint(len(conditions)), (Argument * len(conditions))(*conditions))
        if result:
            raise OSError(-result, name)
    if library.seccomp_load(filter_of):
        raise OSError('seccomp_load')


# as RestrictNamespaces= does
WITHOUT_CLONE3 = {'clone3': errno.ENOSYS}
# Linux 5.0
WITHOUT_PIDFD = {**WITHOUT_CLONE3, 'pidfd_open': errno.ENOSYS, 'pidfd_send_signal': errno.ENOSYS}
# a kernel or a container without seccomp
WITHOUT_SECCOMP = {'seccomp': errno.ENOSYS, ('prctl', PR_SET_SECCOMP): errno.EINVAL}
