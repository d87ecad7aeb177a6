"""Print what is missing: each module given, or public name of one, with the error that tells it.

Public names are those that type checkers read: the written `__all__`, or else what is imported `as`
itself. At run time `__all__` leaves out the missing.
"""

import ast
import importlib
import inspect
import json
import sys
from types import ModuleType


def listed(module: ModuleType) -> list[str]:
    """Return what a type checker reads as the public names of *module*."""
    names: list[str] = []
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.Assign([ast.Name("__all__")], value):
                return list(ast.literal_eval(value))
            case ast.If(ast.Name("TYPE_CHECKING"), imports):
                for one in imports:
                    if isinstance(one, ast.ImportFrom):
                        names += [name.name for name in one.names if name.asname == name.name]
            case _:
                pass
    return names


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
            if public != "__version__":
                there.append(public)
        except ImportError as error:
            missing[f"{name}.{public}"] = str(error)
    inspect.getmembers(module)  # for this and `import *`, nothing that is missing stands in the way
    offered = [public for public in getattr(module, "__all__", ()) if public != "__version__"]
    assert sorted(there) == sorted(offered), (name, set(there) ^ set(offered))
print(json.dumps(missing))
