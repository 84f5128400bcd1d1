# SPDX-License-Identifier: Apache-2.0
"""The command `dynosim mocker` as a module: python3 -m dynosim.mocker [--flags]"""
import sys

from . import _core


def main():
    return _core.program(["dynosim", "mocker", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
