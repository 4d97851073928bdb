"""The link to the agent and the package `agentflow`, shared by all programs of the host."""

import _thread
import importlib
import importlib.machinery
import json
import os
import struct
import sys

MAX_BYTES = hello["max_bytes"]
MAX_TRACEBACK = 64 << 10


class PackageFinder:
    """Gives the modules of `agentflow` from the agent's own text: nothing to install."""

    def __init__(self, texts):
        self.texts = texts

    def find_spec(self, name, path=None, target=None):
        if name not in self.texts:
            return None
        is_package = name == "agentflow"
        return importlib.machinery.ModuleSpec(name, self, origin="<" + name + ">", is_package=is_package)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self.texts[module.__name__], module.__spec__.origin, "exec"), module.__dict__)


sys.meta_path.insert(0, PackageFinder(hello["package"]))

from agentflow.result import InvalidResult, NotDone, encode


class Channel:
    """Frames: four bytes of length, one byte that says what it is, JSON."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.owner = os.getpid()
        self.lock = _thread.allocate_lock()

    def read(self):
        body = take(struct.unpack(">I", take(4))[0])
        return body[:1], body[1:]

    def write(self, kind, body):
        if os.getpid() != self.owner:
            return  # A forked process must not speak for us.
        frame = memoryview(struct.pack(">I", len(body) + 1) + kind + body)
        with self.lock:
            while frame:
                frame = frame[os.write(self.descriptor, frame):]


def as_json(value):
    return json.dumps(value, ensure_ascii=True).encode("ascii")


def bounded(body, what):
    if len(body) > MAX_BYTES:
        raise InvalidResult(
            f"the {what} has {len(body)} bytes, and {MAX_BYTES} is the limit: store it elsewhere and return a reference"
        )
    return body


def own_frames(error):
    """The traceback without the frames of the host and of the import machinery it uses."""
    trace = error.__traceback__
    while trace is not None and is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def is_ours(filename):
    return filename.startswith(("<agentflow", "<frozen importlib")) or filename == importlib.__file__


def evidence(error, begun):
    """What an exception says about the work: an exit or a bad result leaves open whether it happened."""
    if not begun or isinstance(error, NotDone):
        return "not-done"
    is_report = isinstance(error, Exception) and not isinstance(error, InvalidResult)
    return "reported" if is_report else "unknown"


def failure(kind, error, begun, with_trace=True):
    details = {}
    if with_trace:
        import traceback  # only when needed: it takes long to load

        details["type"] = type(error).__name__
        lines = traceback.format_exception(type(error), error, own_frames(error))
        details["traceback"] = clean("".join(lines)[-MAX_TRACEBACK:])
    message = clean(named(error) if with_trace else str(error))
    return {"kind": kind, "message": message, "details": details, "evidence": evidence(error, begun)}


def result_of(returned):
    """The JSON of a result; whatever goes wrong, the handler has returned."""
    try:
        return bounded(encode(returned), "result")
    except InvalidResult:
        raise
    except Exception as error:
        raise InvalidResult(f"the result is no JSON: {named(error)}") from error


def named(error):
    """`KeyError: 'amount'`, as Python prints it."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def clean(text):
    """Text that may stand in JSON, whatever an exception says of itself."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
