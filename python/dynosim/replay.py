# SPDX-License-Identifier: Apache-2.0
"""The command `dynosim replay` as a module: python3 -m dynosim.replay [TRACE ...] [--flags]"""
import sys

from . import _core


def main():
    return _core.program(["dynosim", "replay", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
