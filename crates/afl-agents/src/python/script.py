"""Runs one script in a cage, as far as the platform has one: no network, little memory, no files but in its folder."""

import ctypes
import linecache
import resource

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_NO_NEW_PRIVS = 38


def enclose(limits):
    libc = ctypes.CDLL(None, use_errno=True)
    # Refused where namespaces are switched off; the rest holds all the same.
    isolated = sys.platform == "linux" and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0
    if sys.platform == "linux":
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for name, amount in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(kind)[1]
        amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (amount, amount))
    return isolated


def run(call):
    space = {"__name__": "__script__", "params": call["params"], "result": {}}
    # So that a traceback shows the lines.
    linecache.cache["<script>"] = (len(call["code"]), None, call["code"].splitlines(True), "<script>")
    exec(compile(call["code"], "<script>", "exec", dont_inherit=True), space)
    return bounded(encode(space.get("result")), "result")


enclose(hello["limits"])
channel.write(b"E", b"{}")
call = json.loads(channel.read()[1])
try:
    kind, reply = b"R", run(call)
except InvalidResult as error:
    kind, reply = b"F", as_json(failure("invalid_result", error, with_trace=False))
except BaseException as error:
    kind, reply = b"F", as_json(failure("error", error))
flush()
channel.write(kind, reply)
