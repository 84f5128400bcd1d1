# SPDX-License-Identifier: Apache-2.0
"""Suggestions of algorithm bayesian: the tree-structured Parzen estimator of Optuna.

Equal documents and results give equal suggestions, so a search that goes on after an interruption
asks for the same ones again and takes their results from its journal.
"""
import dataclasses
import math
import warnings

try:
    import numpy
    import optuna
except ImportError:
    raise ImportError("optimizer.algorithm bayesian needs Optuna: pip install optuna==5.0.0") \
        from None

# Drawn at random before the first estimate, as many of each branch.
STARTUP = 10


@dataclasses.dataclass
class Suggestion:
    trial: list  # [branch, coordinate, ...]
    asked: object


class Sampler:
    """Asks for points of the space that a description gives, and learns their scores."""

    def __init__(self, description):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._branches = [[_parameter(f"{b}.{i}", dimension) for i, dimension in enumerate(branch)]
                          for b, branch in enumerate(description["branches"])]
        self._pareto = description["target"] == "pareto"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=description["seed"] % 2**32, constant_liar=True,
                n_startup_trials=STARTUP * len(self._branches))
        self._study = optuna.create_study(
            sampler=sampler, directions=["maximize"] * (2 if self._pareto else 1))
        self._asked = 0

    @property
    def name(self):
        return f"optuna {optuna.__version__} TPESampler"

    @property
    def points(self):
        """Number of points of the space; None when it has no end."""
        sizes = [math.prod(parameter.size for parameter in branch) for branch in self._branches]
        return None if math.inf in sizes else sum(sizes)

    def ask(self):
        branches = len(self._branches)
        if self._asked < STARTUP * branches:  # every branch has its share of the first ones
            self._study.enqueue_trial({"branch": self._asked % branches})
        self._asked += 1
        trial = self._study.ask()
        branch = trial.suggest_categorical("branch", list(range(branches)))
        point = [parameter.suggest(trial) for parameter in self._branches[branch]]
        return Suggestion([branch, *point], trial)

    def tell(self, suggestion, outcome):
        if outcome["status"] != "feasible":  # worse than every score
            self._study.tell(suggestion.asked, state=optuna.trial.TrialState.PRUNED)
        elif self._pareto:
            self._study.tell(suggestion.asked, outcome["objectives"])
        else:
            self._study.tell(suggestion.asked, outcome["score"])


def _parameter(name, dimension):
    if "options" not in dimension:
        return _Range(name, dimension)
    options = dimension["options"]
    rows = [_numbers(option) for option in options]
    if all(row is not None and row.keys() == rows[0].keys() for row in rows):
        return _Numbers(name, rows)
    return _Names(name, len(options))


def _numbers(option):
    """The numbers of an option by path; None when there is something else in it."""
    out = {}
    for path, value in option.items():
        fields = value if isinstance(value, dict) else {"": value}
        for field, number in fields.items():
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                return None
            out[f"{path}.{field}"] = number
    return out


class _Range:
    """Any number of a range."""

    size = math.inf

    def __init__(self, name, dimension):
        self._name, self._integer = name, dimension["integer"]
        convert = int if self._integer else float
        self._low, self._high = convert(dimension["min"]), convert(dimension["max"])
        self._log = dimension["log"]

    def suggest(self, trial):
        suggest = trial.suggest_int if self._integer else trial.suggest_float
        return suggest(self._name, self._low, self._high, log=self._log)


class _Names:
    """Options without an order."""

    def __init__(self, name, size):
        self._name, self.size = name, size

    def suggest(self, trial):
        return trial.suggest_categorical(self._name, list(range(self.size)))


class _Numbers:
    """Options of one or more numbers, such as the parallel shapes of the workers. Each number that
    varies is suggested as its place among the values it has; the nearest option is taken."""

    def __init__(self, name, rows):
        self._name, self.size = name, len(rows)
        columns = [sorted({row[key] for row in rows}) for key in rows[0]]
        varied = [(key, values) for key, values in zip(rows[0], columns) if len(values) > 1]
        self._axes = [(f"{name}.{key}", len(values)) for key, values in varied]
        places = [{value: i for i, value in enumerate(values)} for _, values in varied]
        self._table = numpy.array([[place[row[key]] for (key, _), place in zip(varied, places)]
                                   for row in rows], dtype=numpy.int64).reshape(len(rows), -1)

    def suggest(self, trial):
        wanted = [trial.suggest_int(name, 0, count - 1) for name, count in self._axes]
        distance = numpy.abs(self._table - numpy.array(wanted, dtype=numpy.int64)).sum(axis=1)
        return int(distance.argmin())
