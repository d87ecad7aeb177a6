"""Writes the wheel's software bill of materials (PEP 770), as CycloneDX 1.7.

Hatchling runs it for each wheel. The wheel contains no other project's code, so the document says
who made it, and which libraries it needs, in which versions. It contains no time and nothing of
the machine, so that everybody who builds the same commit gets the same bytes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement

OURSELVES = {"bench", "browser", "dev", "docs", "interop", "neighbours", "queues"}
"""Extras that nobody needs who only uses the package."""


class SbomHook(BuildHookInterface[Any]):
    """Adds `muybridge.cdx.json` to the folder `sboms` of the wheel's metadata."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  hatchling's
        """Write the document, before the wheel is built."""
        self._folder = TemporaryDirectory()
        path = Path(self._folder.name) / "muybridge.cdx.json"
        text = json.dumps(self._document(), indent=2, sort_keys=True)
        path.write_text(f"{text}\n", "utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, *_: object) -> None:
        """Remove the document, which the wheel now has."""
        self._folder.cleanup()

    def _document(self) -> dict[str, Any]:
        core = self.metadata.core
        purl = f"pkg:pypi/{core.name}@{self.metadata.version}"
        extras = core.optional_dependencies
        needed = {
            "required": core.dependencies,
            "optional": [
                line for extra in extras if extra not in OURSELVES for line in extras[extra]
            ],
        }
        components: dict[str, dict[str, Any]] = {}
        for scope, lines in needed.items():
            for requirement in map(Requirement, lines):
                name = re.sub(r"[-_.]+", "-", requirement.name).lower()
                if name != core.name:
                    components.setdefault(name, _component(name, scope, requirement))
        return {
            "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.7",
            "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, purl)}",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "library",
                    "bom-ref": purl,
                    "name": core.name,
                    "version": self.metadata.version,
                    "description": core.description,
                    "licenses": [{"license": {"id": core.license_expression}}],
                    "purl": purl,
                }
            },
            "components": [components[name] for name in sorted(components)],
            "dependencies": [
                {"ref": purl, "dependsOn": sorted(one["bom-ref"] for one in components.values())}
            ],
        }


def _component(name: str, scope: str, requirement: Requirement) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}",
        "name": name,
        "purl": f"pkg:pypi/{name}",
        "scope": scope,
        "isExternal": True,
    }
    if requirement.specifier:
        versions = sorted(str(each) for each in requirement.specifier)
        component["versionRange"] = f"vers:pypi/{'|'.join(versions)}"
    return component
