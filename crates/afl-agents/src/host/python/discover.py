"""Prints the functions that `@handler("ns.Facet")` marks in some files. Reads them only: nothing of theirs is run."""

import ast
import json
import sys


def called(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def marked(path):
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and called(mark.func) == "handler":
                for facet in mark.args:
                    if isinstance(facet, ast.Constant) and isinstance(facet.value, str):
                        yield {"facet_name": facet.value, "entrypoint": node.name, "module_uri": ""}


for path in sys.argv[1:]:
    try:
        print(json.dumps({"path": path, "marked": list(marked(path))}))
    except (OSError, SyntaxError, ValueError) as error:
        print(json.dumps({"path": path, "unreadable": str(error)}))
