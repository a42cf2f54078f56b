"""From an experiment to its trials and stages, their order and the time they take."""

from lab.plan.arm import arm_pair
from lab.plan.estimate import TrialTime, estimate_s
from lab.plan.trials import plan_trials, stages

__all__ = ["TrialTime", "arm_pair", "estimate_s", "plan_trials", "stages"]
