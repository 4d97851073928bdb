"""Runs handlers, one call at a time, until the link closes."""

import importlib.util
import queue
import signal
import threading

from agentflow.context import Context
from agentflow.dispatch import NoEntrypoint, find, invoke, registrations, takes_context

EXIT_SECONDS = 2
KINDS = {"log": b"L", "progress": b"P", "heartbeat": b"H", "update": b"U"}

sys.path[:0] = [folder for folder in hello["folders"] if folder not in sys.path]


class VerifiedLoader(importlib.machinery.SourceFileLoader):
    """Loads the bytes that the agent has read and verified, not the file as it may be by now."""

    def __init__(self, name, path, source):
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname):
        return compile(self.source, self.path, "exec", dont_inherit=True)

    def get_data(self, path):
        return self.source if path == self.path else super().get_data(path)


class HandlerFinder:
    """Answers for the handlers' own modules, wherever they are imported from."""

    def __init__(self):
        self.specs = {}

    def add(self, name, path, source, is_package):
        folders = [os.path.dirname(path)] if is_package else None
        loader = VerifiedLoader(name, path, source)
        self.specs[name] = importlib.util.spec_from_file_location(
            name, path, loader=loader, submodule_search_locations=folders
        )

    def find_spec(self, name, path=None, target=None):
        return self.specs.get(name)


class Host:
    def __init__(self):
        self.calls = queue.SimpleQueue()
        self.finder = HandlerFinder()
        self.modules = {}
        self.functions = {}
        self.loop = None
        self.current = None
        sys.meta_path.insert(0, self.finder)

    def listen(self):
        """On a thread of its own, so that a cancel and the agent's end are noticed while a handler works."""
        while True:
            try:
                kind, body = self.receive()
            except EOFError:
                return self.end()
            if kind == b"C":
                self.cancel()
            else:
                self.calls.put(body)

    def receive(self):
        header = self.take(4)
        body = self.take(struct.unpack(">I", header)[0])
        return body[:1], body[1:]

    def take(self, count):
        parts = []
        while count:
            part = os.read(link, min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def end(self):
        """The agent is gone or done with us: nothing of ours may go on, but what is idle may clean up."""
        if self.current is None:
            self.calls.put(None)
            threading.Event().wait(EXIT_SECONDS)
        os.killpg(0, signal.SIGKILL)

    def cancel(self):
        current = self.current
        if current is None:
            return
        context, with_context, task = current
        context._cancelled = True
        if task is not None:
            self.loop.call_soon_threadsafe(task.cancel)
        elif not with_context:
            # It cannot notice by itself.
            os.killpg(0, signal.SIGKILL)

    def serve(self):
        while True:
            body = self.calls.get()
            if body is None:
                return
            self.answer(json.loads(body))

    def answer(self, call):
        failed = b"X"
        try:
            module = self.load(call["module"])
            failed = b"F"
            kind, reply = b"R", self.run(module, call)
        except InvalidResult as error:
            kind, reply = failed, as_json(failure("invalid_result", error, self.has_begun(), with_trace=False))
        except NoEntrypoint as error:
            kind, reply = failed, as_json(failure("not_found", error, self.has_begun(), with_trace=False))
        except BaseException as error:
            kind, reply = failed, as_json(failure("error", error, self.has_begun()))
        self.current = None
        flush()
        channel.write(kind, reply)

    def run(self, module, call):
        facts = call["facts"]
        if call["purpose"] == "discover":
            return encode({"registrations": registrations(module)})
        key = (module.__name__, facts["facet"], call["entrypoint"])
        if key not in self.functions:
            function = find(module, facts["facet"], call["entrypoint"])
            self.functions[key] = (function, takes_context(function))
        function, with_context = self.functions[key]
        if call["purpose"] == "check":
            return b"{}"
        context = Context(self.teller(), facts)
        self.current = (context, with_context, None)
        returned = invoke(function, call["payload"], context, self.wait, with_context)
        return result_of(returned)

    def has_begun(self):
        """Whether the first instruction of the handler was reached."""
        return self.current is not None

    def teller(self):
        """Sends what a handler tells, as long as its call goes on."""

        def send(kind, body):
            current = self.current
            if current is None or current[0]._send is not send:
                return
            if kind == "log":
                body["text"] = clean(body["text"])
            flush()
            channel.write(KINDS[kind], bounded(encode(body, kind), kind))

        return send

    def wait(self, awaitable):
        import asyncio

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)

        async def outer():
            return await awaitable

        task = self.loop.create_task(outer())
        self.current = self.current[:2] + (task,)
        return self.loop.run_until_complete(task)

    def load(self, wanted):
        name = wanted["name"]
        if name not in self.modules:
            source = wanted["source"]
            text = source["text"].encode("latin-1")
            # Python and we have modules of our own, whose names a handler's module may share.
            alias = "agentflow_handler_" + name if name in sys.modules else name
            self.finder.add(alias, source["path"], text, source["is_package"])
            self.modules[name] = importlib.import_module(alias)
        return self.modules[name]


channel = Channel(link)
host = Host()
threading.Thread(target=host.listen, daemon=True).start()
channel.write(b"E", b"{}")
host.serve()
