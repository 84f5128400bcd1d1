# SPDX-License-Identifier: Apache-2.0
"""The program `dynosim` as a module: python3 -m dynosim COMMAND ..."""
import sys

from . import _core


def main():
    return _core.program(["dynosim", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
