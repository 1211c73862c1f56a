"""Tenants in files: YAML or JSON, one file per tenant, with variables and rules that several tenants share.

tenant: 3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c
variables: {schema: sales}
rules:
  - include: shared.yaml
  - id: orders
    conditions: {tables: {containsAny: ["${schema}.*"]}}
alerts: [{name: late, kind: log-late, channels: [{type: email, to: grace@example.org}]}]

``$${`` stands for ``${``. A variable that the file does not have is ``TENANTCTL_<name>`` of the environment.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tenantadmin_client.conditions import check_conditions
from tenantadmin_client.sections import SECTIONS, Secret, SectionError

#: A variable, or the escape of what would begin one.
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$\$\{")
_MEMBERS = frozenset({"tenant", "variables", "rules", *SECTIONS})
#: No other variable of the environment can be read: a file is no place for all secrets of a pipeline.
_ENVIRONMENT = "TENANTCTL_"
#: The service takes no larger integer.
_LARGEST = 2**63 - 1
#: Files that are read as rules, by the end of their names.
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


class FileError(Exception):
    """A file cannot be read as rules. The message names the file and the place."""


class _Loader(yaml.SafeLoader):
    """Refuse a name that a mapping has twice, of which the last value would count alone."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    raise yaml.MarkedYAMLError(None, None, f"{key.value} is there twice", key.start_mark)
                names.add(key.value)
        return node


@dataclass(frozen=True)
class RulesFile:
    """What a file says of one tenant, with shared parts and variables filled in.

    Attributes:
        rules: None if the file leaves them alone.
        sections: the parts of each section that the file has, by name.
    """

    path: Path
    tenant: str
    rules: list[dict[str, Any]] | None
    sections: dict[str, dict[str, Any]]

    @property
    def digest(self) -> str:
        """What is equal for equal files alone."""
        whole = self.rules if not self.sections else [self.rules, self.sections]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def read_files(path: Path) -> list[RulesFile]:
    """Read a file, or the rules files of a folder, by name. Files without a tenant are shared parts.

    Raises:
        FileError: a file is no rules file, none in the folder is, or two files have the same tenant.
        UnknownCondition: a condition key is misspelt. The message names the file.
    """
    files = [read_file(file) for file in _find(path)]
    owners: dict[str, Path] = {}
    for file in files:
        if (other := owners.setdefault(file.tenant.lower(), file.path)) != file.path:
            raise FileError(f"{file.path}: {other} has the rules of this tenant already")
        check_conditions(file.rules or [], place=f"{file.path}: ")
    return files


def _find(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        own = [file for file in found if "tenant" in _load(file)]
        if own:
            return own
        raise FileError(f"{path}: no file here names a tenant")
    return [path]


def read_file(path: Path) -> RulesFile:
    """Read the rules of a tenant.

    Raises:
        FileError: the file is no rules file, or a variable has no value.
    """
    document = _load(path)
    tenant = document.get("tenant")
    if not isinstance(tenant, str):
        raise FileError(f"{path}: 'tenant' must be the id of a tenant")
    variables = {**read_environment(), **(document["variables"] or {})}
    try:
        sections = {
            name: section.parse(_fill(path, document[name], variables))
            for name, section in SECTIONS.items()
            if name in document
        }
    except SectionError as error:
        raise FileError(f"{path}: {error}") from error
    rules = None if sections and "rules" not in document else _rules(path, document, variables, ())
    return RulesFile(path, tenant, rules, sections)


def read_environment() -> dict[str, str]:
    """Return the variables of the environment that files may use, by their names in files."""
    return {
        name.removeprefix(_ENVIRONMENT): value
        for name, value in os.environ.items()
        if name.startswith(_ENVIRONMENT)
    }


def commit_of(path: Path) -> str:
    """Return ``commit <hash>`` for a file in git, and whether it was changed since; else an empty text."""
    folder = path.resolve().parent
    try:
        _git(folder, "ls-files", "--error-unmatch", "--", path.name)
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--", path.name)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"commit {commit}, with changes that are not committed" if changed else f"commit {commit}"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def write_file(
    path: Path,
    *,
    tenant: str,
    rules: list[dict[str, Any]],
    sections: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[str]:
    """Write what a tenant has as YAML or JSON, by the end of the file's name.

    Return the variables of the environment that the file stands for its secrets with.
    """
    shown = {name: SECTIONS[name].show(tenant, parts) for name, parts in (sections or {}).items()}
    secrets: list[str] = []
    document = {"tenant": tenant, **_escaped({"rules": rules, **shown}, secrets)}
    if path.suffix == ".json":
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    else:
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(text, encoding="utf-8")
    return secrets


def _escaped(value: Any, secrets: list[str]) -> Any:
    """Return a value whose texts hold no variable when the file is read again. A secret becomes one."""
    if isinstance(value, dict):
        return {key: _escaped(part, secrets) for key, part in value.items()}
    if isinstance(value, list):
        return [_escaped(part, secrets) for part in value]
    if isinstance(value, Secret):
        secrets.append(f"{_ENVIRONMENT}{value.variable}")
        return f"${{{value.variable}}}"
    return value.replace("${", "$${") if isinstance(value, str) else value


def _load(path: Path) -> dict[str, Any]:
    try:
        # YAML 1.2 reads JSON too.
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 # it is a SafeLoader
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The text has no name; its path is said before it.
        said = str(error).replace('in "<unicode string>", ', "")
        raise FileError(f"{path}: {' '.join(said.split())}") from error
    if not isinstance(document, dict):
        raise FileError(f"{path}: the file must have 'tenant' and 'rules'")
    if unknown := document.keys() - _MEMBERS:
        raise FileError(f"{path}: there is no member '{min(map(str, unknown))}'")
    if not isinstance(document.setdefault("variables", {}) or {}, dict):
        raise FileError(f"{path}: 'variables' must be names and values")
    _check_json(path, document, "", ())
    return document


def _check_json(path: Path, value: object, place: str, parents: tuple[int, ...]) -> None:
    """Refuse what JSON does not have: YAML reads dates, infinities and names that are no texts."""
    if id(value) in parents:
        raise FileError(f"{path}: {place}: it contains itself")
    parents = (*parents, id(value))
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str) or not _is_text(key):
                raise FileError(f"{path}: {place}: the name {key!r} is no text. Write it in quotes.")
            _check_json(path, part, f"{place}/{key}", parents)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check_json(path, part, f"{place}/{index}", parents)
    elif reason := _not_json(value):
        raise FileError(f"{path}: {place}: {reason}")


def _not_json(value: object) -> str | None:
    """Return why a value that has no parts is none of JSON, or None if it is one."""
    if isinstance(value, str):
        return None if _is_text(value) else "it holds half of a character, a surrogate"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} is no number of JSON"
    if isinstance(value, int):
        return None if abs(value) <= _LARGEST else "the number is too large"
    return None if value is None else f"a {type(value).__name__} is no value of JSON. Write it in quotes."


def _is_text(value: str) -> bool:
    """Return False if a text cannot be sent: YAML and JSON have escapes of surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _rules(
    path: Path, document: Mapping[str, Any], variables: Mapping[str, Any], parents: tuple[Path, ...]
) -> list[dict[str, Any]]:
    if path.resolve() in parents:
        raise FileError(f"{path}: the file includes itself")
    found = document.get("rules")
    if not isinstance(found, list):
        raise FileError(f"{path}: 'rules' must be a list")
    rules: list[dict[str, Any]] = []
    for index, rule in enumerate(found):
        if not isinstance(rule, dict):
            raise FileError(f"{path}: rule {index + 1} must be an object")
        if "include" in rule:
            shared = path.parent / str(rule["include"])
            part = _load(shared)
            inner = {**(part["variables"] or {}), **variables}
            rules += _rules(shared, part, inner, (*parents, path.resolve()))
        else:
            rules.append(_fill(path, rule, variables))
    return rules


def _fill(path: Path, value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(path, part, variables) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill(path, part, variables) for part in value]
    if not isinstance(value, str):
        return value
    whole = _VARIABLE.fullmatch(value)
    if whole and whole[1] in variables:
        return variables[whole[1]]

    def text_of(match: re.Match[str]) -> str:
        if match[1] is None:
            return "${"
        if match[1] not in variables:
            raise FileError(f"{path}: the variable '{match[1]}' has no value")
        return str(variables[match[1]])

    return _VARIABLE.sub(text_of, value)
