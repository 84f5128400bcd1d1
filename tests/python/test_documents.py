# SPDX-License-Identifier: Apache-2.0
"""Runs every Python example of the documents; tests/docs/run has their commands."""
import os
import re
import subprocess
import sys

import pytest

from surfaces import PROGRAM, ROOT


def fenced(name, language):
    text = (ROOT / name).read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    assert blocks, f"{name} has no {language}"
    return blocks


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


def numbered(blocks):
    return [pytest.param(block, id=str(i)) for i, block in enumerate(blocks, 1)]


PYTHON_EXAMPLES = [block for name in ("README.md", "docs/python.md")
                   for block in fenced(name, "python")]


@pytest.mark.parametrize("code", numbered(PYTHON_EXAMPLES))
def test_python_examples(code, folder):
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
