"""Print what is missing: each module given, or public name of one, with the error that tells it.

Public names are those that type checkers read in `__all__`. At run time it leaves out the missing.
"""

import ast
import importlib
import inspect
import json
import sys
from types import ModuleType


def listed(module: ModuleType) -> list[str]:
    """Return the `__all__` that is written in the source of *module*."""
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.Assign([ast.Name("__all__")], value):
                return list(ast.literal_eval(value))
            case _:
                pass
    return []


missing: dict[str, str] = {}
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        missing[name] = str(error)
        continue
    there = list[str]()
    for public in listed(module):
        try:
            getattr(module, public)
            there.append(public)
        except ImportError as error:
            missing[f"{name}.{public}"] = str(error)
    inspect.getmembers(module)  # for this and `import *`, nothing that is missing stands in the way
    assert there == list(getattr(module, "__all__", ())), name
print(json.dumps(missing))
