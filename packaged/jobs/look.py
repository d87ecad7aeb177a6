"""Print what is missing: each module given, or public name of one, with the error that tells it."""

import importlib
import json
import sys

missing: dict[str, str] = {}
for module in sys.argv[1:]:
    name = module
    try:
        found = importlib.import_module(module)
        for public in getattr(found, "__all__", ()):
            name = f"{module}.{public}"
            try:
                getattr(found, public)
            except ImportError as error:
                missing[name] = str(error)
    except ImportError as error:
        missing[module] = str(error)
print(json.dumps(missing))
