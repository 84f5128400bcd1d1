# SPDX-License-Identifier: Apache-2.0
"""Runs every Python example of the documents; tests/docs/run has their commands."""
import os
import re
import subprocess
import sys

import pytest

from surfaces import PROGRAM, ROOT


def python_examples():
    """Every fenced block of Python, named by its page and number."""
    pages = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {f"{page.relative_to(ROOT)}:{number}": block for page in pages for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S), 1)}


PYTHON_EXAMPLES = python_examples()
assert {"README.md:1", "docs/python.md:1", "docs/capacity.md:1"} <= set(PYTHON_EXAMPLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that looks like the repository after `make build`, so that nothing is left behind."""
    path = tmp_path_factory.mktemp("repository")
    (path / "build").mkdir()
    os.symlink(ROOT / "examples", path / "examples")
    program = path / "build" / "dynosim"
    program.write_text("#!/bin/sh\nexec " + " ".join(PROGRAM) + ' "$@"\n')
    program.chmod(0o755)
    return path


@pytest.mark.parametrize("name", PYTHON_EXAMPLES)
def test_python_examples(name, folder):
    done = subprocess.run([sys.executable, "-c", PYTHON_EXAMPLES[name]], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
