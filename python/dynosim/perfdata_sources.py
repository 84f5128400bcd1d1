# SPDX-License-Identifier: Apache-2.0
"""Which measured files feed one table of a (system, backend, version), and in which order.

The folder holds <system>.yaml, query_versions.yaml, perf_data_reuse_manifest.yaml,
attention_lane_defaults.yaml and data/<system>/<family>/<backend>/<version>/<table>.parquet.
"""
import functools
import pathlib
import re

import yaml
from packaging.version import InvalidVersion, Version

NOT_FAMILIES = {"trtllm", "sglang", "vllm", "nccl", "oneccl"}
BACKENDS = ("sglang", "trtllm", "vllm")


def parsed(version):
    try:
        return Version(version)
    except InvalidVersion:
        return None


def newest_first(version):
    """Sort key: versions that cannot be parsed come last, by their text."""
    known = parsed(version)
    return (known is not None, known or Version("0"), version)


def read_yaml(path):
    if not path.is_file():
        return None
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


class Systems:
    """The folder as a whole."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.slots = read_yaml(self.folder / "query_versions.yaml") or {}
        self.manifest = (read_yaml(self.folder / "perf_data_reuse_manifest.yaml") or {}).get(
            "groups") or []
        self.lanes = read_yaml(self.folder / "attention_lane_defaults.yaml") or {}

    def names(self):
        return sorted(p.stem for p in self.folder.glob("*.yaml")
                      if "data_dir" in (read_yaml(p) or {}))

    @functools.cache
    def spec(self, system):
        return read_yaml(self.folder / f"{system}.yaml")

    @functools.cache
    def tree(self, system):
        return Tree(self.folder / self.spec(system)["data_dir"])

    @functools.cache
    def next_version(self, backend, current):
        """The highest version of any system that follows the common slots, above `current`."""
        found = set()
        for system in self.names():
            if backend not in (self.slots.get("overrides") or {}).get(system, {}):
                found |= self.tree(system).versions_with_tables(backend)
        above = [v for v in found if parsed(v) and parsed(current) and parsed(v) > parsed(current)]
        return max(above, key=parsed, default=None)

    def versions(self, system, backend):
        """{slot: version} of the slots that exist."""
        own = (self.slots.get("overrides") or {}).get(system, {}).get(backend)
        slots = own or (self.slots.get("defaults") or {}).get(backend) or {}
        named = {name: str(slots[name]) for name in ("current", "previous") if slots.get(name)}
        # A system with slots of its own stays out of the common next version.
        if "current" in named and own is None:
            following = self.next_version(backend, named["current"])
            if following:
                named["next"] = following
        return named

    def default_lane(self, backend, version, sm_version):
        """The kernel that the backend uses by itself: a name, or None when nothing is known."""
        return self.floor_match(self.lanes.get(backend), version, sm_version)

    def architecture_lanes(self, backend, version, sm_version):
        """{architecture: kernel} of models for which the backend chooses otherwise."""
        found = {name: self.floor_match(by_backend.get(backend), version, sm_version)
                 for name, by_backend in (self.lanes.get("architectures") or {}).items()}
        return {name: lane for name, lane in found.items() if lane is not None}

    @staticmethod
    def floor_match(by_version, version, sm_version):
        """The entry of the greatest version that is not above `version`."""
        numbers = lambda v: [int(n) for n in re.findall(r"\d+", v)]
        known = [v for v in by_version or {} if numbers(v) <= numbers(version)]
        return by_version[max(known, key=numbers)].get(sm_version) if known else None


class Tree:
    """data/<system>."""

    def __init__(self, folder):
        self.folder = folder
        self.families = sorted(
            p.name for p in folder.iterdir()
            if p.is_dir() and p.name not in NOT_FAMILIES and not p.name.startswith(".")
        ) if folder.is_dir() else []

    @functools.cache
    def versions(self, backend, family):
        folder = self.folder / family / backend
        if not folder.is_dir():
            return frozenset()
        return frozenset(p.name for p in folder.iterdir()
                         if p.is_dir() and p.name[0] not in "._" and self.usable(p))

    @staticmethod
    def usable(folder):
        return (folder / "collection_meta.yaml").is_file() or not (
            folder / "INCOMPLETE.txt").is_file()

    def all_versions(self, backend, families=None):
        found = set()
        for family in families or self.families:
            found |= self.versions(backend, family)
        return found

    def versions_with_tables(self, backend):
        return {v for family in self.families for v in self.versions(backend, family)
                if any((self.folder / family / backend / v).glob("*.parquet"))}

    @functools.cache
    def find(self, backend, version, file):
        """The one file of a table, or None."""
        for family in self.families:
            if version in self.versions(backend, family):
                path = self.folder / family / backend / version / file
                if path.is_file():
                    return path
        return None

    def families_of(self, file):
        return {f for f in self.families if any((self.folder / f).glob(f"*/*/{file}"))}

    def declared(self, backend, version, file):
        """Versions that the folder itself names as donors of a table."""
        donors = []
        for family in self.families:
            reuse = read_yaml(self.folder / family / backend / version / "reuse.yaml") or {}
            for entry in reuse.get("reuse") or []:
                donor = str(entry["from_version"])
                if entry["table"] + ".parquet" == file and donor not in donors:
                    if self.find(backend, donor, file):
                        donors.append(donor)
        return donors


def sources(systems, system, backend, version, file):
    """[(path, kernel names or None, is primary)] in order of priority."""
    tree = systems.tree(system)
    families = tree.families_of(file)
    collective = families == {"comm"}
    found = []

    def add(path, kernels=None, primary=False):
        if path is not None:
            found.append((path, kernels, primary))

    add(tree.find(backend, version, file), primary=True)
    if len(families) > 1 and "comm" in families:
        return found
    donors = [] if collective else tree.declared(backend, version, file)
    for donor in donors:
        add(tree.find(backend, donor, file))
    own = parsed(version)
    if own is not None:
        siblings = tree.all_versions(backend, ["comm"] if collective else None)
        earlier = [v for v in siblings - {version} - set(donors)
                   if parsed(v) is not None and parsed(v) < own]
        for sibling in sorted(earlier, key=newest_first, reverse=True):
            add(tree.find(backend, sibling, file))
    if collective:
        return found
    kernels = {}
    for group in systems.manifest:
        frameworks = {f.lower() for f in group.get("frameworks") or []}
        if (group.get("op_file", "").replace(".txt", ".parquet") == file
                and group.get("kernel_source") and backend in frameworks
                and group.get("tier") in ("shared", "shared_fallback")):
            for other in frameworks - {backend}:
                kernels.setdefault(other, set()).add(group["kernel_source"])
    for other in sorted(kernels):
        for donor in sorted(tree.all_versions(other), key=newest_first, reverse=True):
            add(tree.find(other, donor, file), frozenset(kernels[other]))
    return found
