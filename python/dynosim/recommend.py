# SPDX-License-Identifier: Apache-2.0
"""The command `dynosim recommend` as a module, which also knows algorithm bayesian and Ray:

    python3 -m dynosim.recommend -c FILE [--flags] [--executor local|ray] [--ray-address ADDRESS]
"""
import signal
import sys
import time
import types

from . import _core
from ._recommend import Search, recommend

_OWN = """\
Of this module:
  --executor NAME             local (default): all cores of this machine; ray: a Ray cluster
  --ray-address ADDRESS       of the cluster; without it one of this machine alone
"""


class _Callable(types.ModuleType):
    """`import dynosim.recommend` leaves the function of that name callable."""

    def __call__(self, *arguments, **named):
        return recommend(*arguments, **named)


class _Line:
    """One line on a terminal while candidates run."""

    def __init__(self):
        self._start, self._already, self._next = time.monotonic(), None, 0.0

    def progress(self, done, total):
        now = time.monotonic()
        self._already = max(done - 1, 0) if self._already is None else self._already
        if sys.stderr.isatty() and now >= self._next:
            self._next = now + 0.1
            text = _core.candidate_text(done, self._already, total, now - self._start)
            print("\r\x1b[K" + text, end="", file=sys.stderr, flush=True)

    def erase(self):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def warn(self, text):
        self.erase()
        print(f"dynosim: warning: {text}", file=sys.stderr)


def _own_options(arguments):
    """Takes --executor and --ray-address out of the arguments."""
    options, rest = {"executor": "local", "ray-address": None}, []
    arguments = iter(arguments)
    for argument in arguments:
        name, attached, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or name not in options:
            rest.append(argument)
            continue
        options[name] = value if attached else next(arguments, None)
        if options[name] is None:
            raise ValueError(f"--{name}: 1 required ARGUMENT missing")
    if options["executor"] not in ("local", "ray"):
        raise ValueError(f"--executor: must be local or ray, got '{options['executor']}'")
    if options["executor"] == "local" and options["ray-address"] is not None:
        raise ValueError("--ray-address: needs --executor ray")
    return options["executor"], options["ray-address"], rest


def _fail(text, code):
    print("dynosim: error: " + " ".join(str(text).split()), file=sys.stderr)
    return code


def _search(prepared, executor, address):
    line = _Line()
    search = Search(prepared, executor, address)
    with search:
        try:
            search.run(line.progress, line.warn)
        except KeyboardInterrupt:
            line.erase()
            return _fail(search.campaign.interrupted_text(), 130)
        line.erase()
    feasible, counts, output = search.campaign.finish()
    if not feasible:
        sys.stderr.write(counts)
        return _fail("no feasible candidate found; saved full result to: "
                     f"{prepared.output_dir.rstrip('/')}/recommendation.json", 1)
    sys.stdout.write(output)
    sys.stdout.flush()
    return 0


def main():
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        code = _core.program(["dynosim", "recommend", *arguments])
        print(_OWN, end="")
        return code
    # SIGTERM ends it as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        executor, address, rest = _own_options(arguments)
        return _search(_core.Recommendation.of_arguments(rest), executor, address)
    except (ImportError, ValueError) as error:
        return _fail(error, 2)
    except (OSError, RuntimeError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)


if __name__ == "__main__":
    sys.exit(main())
else:
    sys.modules[__name__].__class__ = _Callable
