"""``python -m agentflow test MODULE --facet ns.Facet --input '{…}'``: runs one handler and prints its result."""

import argparse
import json
import sys
import traceback
from typing import Any, List, Optional

from .dispatch import DEFAULT_ENTRYPOINT
from .testing import load, run_handler


def main(arguments: Optional[List[str]] = None) -> int:
    options = _options().parse_args(arguments)
    try:
        payload = json.loads(sys.stdin.read() if options.input == "-" else options.input)
        metadata = json.loads(options.metadata)
    except ValueError as error:
        print(f"the input is no JSON: {error}", file=sys.stderr)
        return 2
    try:
        module = load(options.module)
        run = run_handler(module, payload, facet=options.facet, entrypoint=options.entrypoint,
                          metadata=metadata, on=_show)
    except Exception:  # noqa: BLE001 - whatever the handler raises is for its author to see
        traceback.print_exc()
        return 1
    print(json.dumps(run.result, indent=2, ensure_ascii=False))
    return 0


def _show(kind: str, body: Any) -> None:
    text = f"[{body['level']}] {body['text']}" if kind == "log" else f"[{kind}] {json.dumps(body, default=str)}"
    print(text, file=sys.stderr)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m agentflow", description="Try handlers without an engine")
    commands = parser.add_subparsers(dest="command", required=True)
    test = commands.add_parser("test", help="call one handler and print its result")
    test.add_argument("module", help="dotted name or path of the module")
    test.add_argument("--facet", default="", help="qualified name of the event facet")
    test.add_argument("--entrypoint", default=DEFAULT_ENTRYPOINT, help="function to call (default: handle)")
    test.add_argument("--input", default="{}", help="payload as JSON, or - to read it from standard input")
    test.add_argument("--metadata", default="{}", help="metadata of the registration as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
