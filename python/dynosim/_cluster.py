# SPDX-License-Identifier: Apache-2.0
"""Candidates on the machines of a Ray cluster. Every machine needs this version of the package, and
the files that the document names, at the same paths."""
import os

try:
    import ray
except ImportError:
    raise ImportError("executor 'ray' needs Ray: pip install ray==2.60.0") from None

from . import __version__, _core

# Places that results depend on, told to every machine.
_VARIABLES = ("DYNOSIM_PERFDATA",)


class _Runner:
    """Runs candidates of one search, one at a time."""

    def __init__(self, version, folder, variables, document, where, stack):
        if version != __version__:
            raise RuntimeError(f"the cluster has dynosim {__version__}, not {version}")
        os.chdir(folder)
        os.environ.update(variables)
        self._search = _core.Recommendation.of_options(where, document, [], stack, "unused", False,
                                                       False, 1, "")

    def run(self, trial):
        """The result as text, and what it warned of."""
        warned = []
        return self._search.evaluate(trial, warned.append), warned


class Cluster:
    """Runners on a cluster, as many as it has processors for, at most optimizer.parallelism."""

    def __init__(self, prepared, description, address):
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(address=address, log_to_driver=False, logging_level="error",
                     include_dashboard=False if address is None else None)
        self._most = max(1, min(description["parallelism"], int(ray.cluster_resources()["CPU"])))
        variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        self._arguments = (__version__, os.getcwd(), variables, prepared.document, prepared.where,
                           prepared.stack)
        self._runners = []

    def run(self, campaign, progress, warn):
        """Ends all pending trials; each is kept when it is there."""
        pending = campaign.pending()
        actor = ray.remote(num_cpus=1)(_Runner)
        while len(self._runners) < min(self._most, len(pending)):
            self._runners.append(actor.remote(*self._arguments))
        idle, busy, warned, at = list(self._runners), {}, set(), 0
        while at < len(pending) or busy:
            while idle and at < len(pending):
                runner, (number, trial) = idle.pop(), pending[at]
                busy[runner.run.remote(trial)] = runner, number
                at += 1
            for reference in ray.wait(list(busy))[0]:
                runner, number = busy.pop(reference)
                idle.append(runner)
                result, texts = ray.get(reference)
                campaign.keep(number, result)
                for text in texts:
                    if text not in warned:
                        warned.add(text)
                        warn(text)
                progress(campaign.finished, campaign.planned)

    def close(self):
        for runner in self._runners:
            ray.kill(runner)
        self._runners = []
        if self._started:
            ray.shutdown()
