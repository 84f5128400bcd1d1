# SPDX-License-Identifier: Apache-2.0
"""Searches for a deployment."""
import functools
import json
import os
import pathlib
import warnings

from . import _core
from ._errors import call
from ._report import _frame

# Suggested together, before any of them is known. No smaller on a machine with fewer cores: the
# suggestions would be others.
BATCH = 8


def recommend(document, *, overrides=None, stack="engine", output_dir="./aisimulate-output",
              overwrite=False, resume=False, top=20, report_html=None, executor="local",
              ray_address=None, progress=None):
    """Searches the deployments that a document describes for the best ones.

    document: a dictionary, or the path of a YAML file; docs/recommend.md has every field.
    overrides: {"optimizer.max_trials": 100, ...} or a list of PATH=YAML.
    stack: "engine", or "dynamo" with the router around the engines.
    output_dir: folder of the results, the same files with the same bytes as those of the command
      `dynosim recommend`. overwrite replaces results in a folder that is not empty; resume goes on
      with the search that was interrupted there.
    top: deployments that are written, the best (1 to 9999).  report_html: path of a page.
    executor: "local" runs candidates on all cores of this machine; "ray" on a Ray cluster, the one
      at ray_address or the one that this process is connected to, else one of this machine alone.
      The results are the same. optimizer.parallelism bounds candidates at a time.
    progress: called as progress(done, total) in this thread when candidates have finished.

    algorithm "bayesian" needs Optuna (the extra `bayesian`), executor "ray" needs Ray (`ray`).

    Gives a Recommendation, whose ranking is empty when no candidate is feasible. Ctrl-C raises
    KeyboardInterrupt, and an exception of `progress` goes on; what is finished is kept for resume.
    ValueError: the document, an argument or the output folder is not possible. OSError: the document
    cannot be read. RuntimeError: the results cannot be written, or the cluster failed.
    """
    if executor not in ("local", "ray"):
        raise ValueError(f"executor must be 'local' or 'ray', got {executor!r}")
    if executor == "local" and ray_address is not None:
        raise ValueError("ray_address needs executor='ray'")
    where, text = "document", None
    if isinstance(document, (str, os.PathLike)):
        where = os.fspath(document)
        with open(where, "rb"):
            pass
    else:
        text = json.dumps(document)
    if hasattr(overrides, "items"):
        overrides = [f"{path}={json.dumps(value)}" for path, value in overrides.items()]
    prepared = call(
        _core.Recommendation.of_options,
        where, text, list(overrides or []), stack, os.fspath(output_dir), bool(overwrite),
        bool(resume), top, "" if report_html is None else os.fspath(report_html))
    search = call(Search, prepared, executor, ray_address)
    with search:
        search.run(progress or _nothing, _warn)
    _, _, table = call(search.campaign.finish)
    return Recommendation(output_dir, table)


class Search:
    """A search under way: suggests trials, has them run, and keeps the results."""

    def __init__(self, prepared, executor, ray_address=None):
        self.description = json.loads(prepared.description())
        self._suggests = self.description["algorithm"] == "bayesian"
        sampler = None
        if self._suggests:
            from . import _suggest
            sampler = _suggest.Sampler(self.description)
        self._sampler = sampler
        self._cluster = None
        if executor == "ray":
            from . import _cluster
            self._cluster = _cluster.Cluster(prepared, self.description, ray_address)
        try:
            self.campaign = prepared.open(sampler.name if sampler else "")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def run(self, progress, warn):
        """Until every trial is finished; what stops it earlier is an exception."""
        if not self._suggests:
            self._run_pending(progress, warn)
            return
        most, repeated = self.description["max_trials"], 0
        count = 0
        while count < most and not self._exhausted():
            suggestions = [self._sampler.ask() for _ in range(min(BATCH, most - count))]
            count += len(suggestions)
            before = self.campaign.planned
            numbers = [self.campaign.add(json.dumps(s.trial)) for s in suggestions]
            repeated += len(suggestions) - (self.campaign.planned - before)
            again = repeated
            self._run_pending(lambda done, _: progress(done + again, most), warn)
            for suggestion, number in zip(suggestions, numbers):
                self._sampler.tell(suggestion, json.loads(self.campaign.outcome(number)))

    def _exhausted(self):
        return self._sampler.points is not None and self.campaign.planned >= self._sampler.points

    def _run_pending(self, progress, warn):
        if self._cluster is not None:
            self._cluster.run(self.campaign, progress, warn)
        else:
            self.campaign.run_pending(progress, warn)


class Recommendation:
    """The results of a search, read from its output folder.

    candidates: a dictionary per candidate, in the order they were tried: candidate_id, config (what
      was chosen, by path), status, reason_category, reason, used_gpus, score (larger is better),
      objectives, metrics (the summary), prediction_config (the document for predict).
    ranking: the best candidates, best first.  pareto_front: those that no other beats in tokens/s
      per GPU and tokens/s per user.  counts: candidates by status.
    paths: documents of the ranking on disk, for `predict`.
    """

    def __init__(self, output_dir, table=""):
        self.output_dir = pathlib.Path(output_dir)
        self._table = table

    @functools.cached_property
    def _result(self):
        return json.loads((self.output_dir / "recommendation.json").read_text(encoding="utf-8"))

    def to_dict(self):
        """The content of recommendation.json."""
        return self._result

    @property
    def candidates(self):
        return self._result["candidates"]

    @property
    def counts(self):
        return self._result["counts"]

    @property
    def ranking(self):
        return self._named("top_n")

    @property
    def pareto_front(self):
        return self._named("pareto_front")

    @property
    def paths(self):
        return [self.output_dir / "recommendations" / f"{rank:04}.yaml"
                for rank in range(1, len(self._result["views"]["top_n"]) + 1)]

    def table(self):
        """The ranking that the command line prints."""
        return self._table

    def frame(self):
        """pandas.DataFrame with a row per candidate: status, reason, used_gpus, score, a column for
        every path that was chosen, both throughputs, and the metrics of its summary."""
        return _frame([{**{name: c[name] for name in ("candidate_id", "status", "reason",
                                                      "used_gpus", "score")},
                        **c["config"], **(c["objectives"] or {}), **(c["metrics"] or {})}
                       for c in self.candidates])

    def _named(self, view):
        by_id = {candidate["candidate_id"]: candidate for candidate in self.candidates}
        return [by_id[name] for name in self._result["views"][view]]

    def __repr__(self):
        best = self.ranking[:1]
        return (f"<Recommendation: {self.counts['evaluated']} candidates, "
                f"{self.counts['feasible']} feasible"
                + (f", best score {best[0]['score']:.4g} on {best[0]['used_gpus']} GPUs>" if best
                   else ">"))


def _nothing(_done, _total):
    pass


def _warn(text):
    warnings.warn(text, stacklevel=2)
