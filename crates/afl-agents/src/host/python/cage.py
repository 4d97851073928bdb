"""Encloses this process as far as the platform can: namespaces, Landlock, limits. What it refuses is left out."""

import ctypes
import resource

NEWIPC, NEWUSER, NEWPID, NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000
SET_NO_NEW_PRIVS = 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
ASK_VERSION, PATH_BENEATH = 1, 1
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
WRITE_FILE = 1 << 1
# Rights over files by the version that brought the last of them.
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
BIND_AND_CONNECT, SOCKETS_AND_SIGNALS = 3, 3

libc = ctypes.CDLL(None, use_errno=True)


def enclose(limits):
    """Returns in the caged process only."""
    if sys.platform == "linux":
        leave_the_others()
        libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        leave_the_files()
    for name, amount in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(kind)[1]
        amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (amount, amount))


def leave_the_others():
    """No network and no foreign processes: a child in namespaces of its own goes on, and we end as it does."""
    if libc.unshare(NEWUSER | NEWNET | NEWPID | NEWIPC) != 0:
        libc.unshare(NEWUSER | NEWNET)
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    child = os.fork()
    if child:
        os.close(link)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            os.kill(os.getpid(), os.WTERMSIG(status))
        os._exit(os.WEXITSTATUS(status))


def leave_the_files():
    """Python's own files may be read, the working folder may be used; nothing may be started."""
    version = libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, ASK_VERSION)
    if version < 1:
        return
    handled = FILE_RIGHTS[max(known for known in FILE_RIGHTS if known <= version)]
    words = [handled] + [BIND_AND_CONNECT] * (version >= 4) + [SOCKETS_AND_SIGNALS] * (version >= 6)
    rules = (ctypes.c_uint64 * len(words))(*words)
    ruleset = libc.syscall(LANDLOCK_CREATE_RULESET, rules, ctypes.sizeof(rules), 0)
    folders = {sys.base_prefix, sys.prefix, "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo"}
    for folder in folders:
        allow(ruleset, folder, READ_FILE | READ_DIR)
    for device in ("/dev/null", "/dev/urandom"):
        allow(ruleset, device, READ_FILE | WRITE_FILE)
    allow(ruleset, os.getcwd(), handled & ~EXECUTE)
    libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def allow(ruleset, path, rights):
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, beneath))
    libc.syscall(LANDLOCK_ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    os.close(beneath)
