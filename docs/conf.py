"""Sphinx configuration: `sphinx-build -n -W --keep-going -b html docs OUT`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from muybridge import __version__

project = "Muybridge"
author = "The Muybridge maintainers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_llm.txt",
    "muybridge_docs",
]
exclude_patterns = ["_build", "**/__pycache__"]
nitpicky = True
nitpick_ignore = [
    # Types of other libraries that the source imports by name. Only names with their module are
    # recognised as foreign, and nothing is downloaded to find out.
    ("py:class", "Path"),
    ("py:class", "SSLContext"),
    ("py:class", "MeterProvider"),
    ("py:class", "TracerProvider"),
    # Our own types in public signatures whose names are not public: programs have such values, or
    # pass one that fits, without naming the type.
    ("py:class", "AsyncOutcomes"),
    ("py:class", "Book"),
    ("py:class", "Clock"),
    ("py:exc", "ConsentRequired"),
    ("py:class", "Dedupe"),
    ("py:class", "Driver"),
    ("py:class", "Fields"),
    ("py:class", "muybridge.wire.http1.blocking.BlockingResponse"),
    ("py:class", "muybridge.wire.http1.byte_streams.EventLoop"),
    ("py:class", "LibraryLoop"),
    ("py:class", "JsonObject"),
    ("py:class", "MediaFiles"),
    ("py:class", "muybridge_protocol.media.source.Fragments"),
    ("py:class", "Outcome"),
    ("py:class", "Script"),
    ("py:class", "Source"),
    ("py:class", "OpenStream"),
    ("py:class", "Parts"),
    ("py:class", "muybridge.base_client.Parts"),
    ("py:class", "Work"),
    ("py:class", "muybridge.batch.items.batch.Batch"),
    ("py:class", "muybridge.batch.items.reading.CheckedItem"),
    ("py:class", "muybridge.batch.items.reading.CheckedItems"),
    ("py:class", "muybridge.purchases.history.History"),
    ("py:class", "muybridge.purchases.rates.Permits"),
    ("py:class", "muybridge.purchases.steps.Transaction"),
    ("py:class", "muybridge.purchases.store.NewItem"),
    ("py:class", "muybridge.testing.conformance.blocking.BlockingTransport"),
    ("py:class", "muybridge.testing.fake_transport.AsyncFakeResponse"),
    ("py:class", "muybridge.testing.fake_transport.BrokenOff"),
    ("py:class", "muybridge.testing.fake_transport.FakeResponse"),
    ("py:class", "muybridge.testing.fake_transport.Sent"),
    ("py:class", "muybridge.wire.http1.response.Response"),
    # Raised by a function of the core; the clients convert it to their own errors.
    ("py:exc", "InvalidJson"),
]

nitpick_ignore_regex = [
    ("py:class", r"(.*\.)?(K|T|T_co|V_co|Op)"),  # type variables
]

# Markdown: an anchor for each heading, as code hosts create them.
myst_heading_anchors = 4
smartquotes_action = "D"  # dashes only: code hosts do not change quotes either

# The library's docstrings.
default_role = "py:obj"
add_module_names = False
python_use_unqualified_type_names = True
python_display_short_literal_types = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_numpy_docstring = False
napoleon_preprocess_types = False

# The button copies commands without their prompt, and without what they print.
copybutton_selector = "div.highlight-console pre, div.highlight-python pre"
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"Muybridge {release}"
html_static_path = ["static"]
html_css_files = ["muybridge.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
