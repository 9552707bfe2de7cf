# Made by tests/make_stubs.py from the functions themselves.
from minikeras.experiments.comparison import Comparison as Comparison, compare as compare
from minikeras.experiments.ensemble import Ensemble as Ensemble
from minikeras.experiments.problem import Problem as Problem
from minikeras.experiments.results import RunResult as RunResult, SweepResults as SweepResults
from minikeras.experiments.sweep import Sweep as Sweep
from minikeras.experiments.table import Table as Table
from minikeras.experiments.training import EnsembleHistory as EnsembleHistory
