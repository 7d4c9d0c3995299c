"""Several environments as one, told apart by their splits: train on one, be measured on others too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentexp.envs.base import Environment, Expert, HasFloor, Session, Teaches
from agentexp.errors import ConfigError, nearest
from agentexp.types import Task


class Several:
    """Every split belongs to one of the environments.

    environments: by a name of your own. splits: split -> that name; only these splits exist. The
    tasks keep the name of the environment that made them.
    """

    def __init__(self, *, environments: dict[str, Environment], splits: dict[str, str]) -> None:
        if not environments or not splits:
            raise ConfigError(f"several environments: {list(environments)} with splits {splits}; at least one of each")
        for split, owner in splits.items():
            if owner not in environments:
                raise ConfigError(
                    f"split {split!r} belongs to {owner!r}, which is none of the environments "
                    f"{', '.join(environments)}.{nearest(owner, environments)}"
                )
        self.environments, self.splits = environments, splits
        self.name = "+".join(e.name for e in environments.values())

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of the environment that has the split."""
        return self._owner(split).tasks(split)

    def start(self, task: Task, seed: int) -> Session:
        return self._owner(task.split).start(task, seed)

    def expert(self, task: Task, seed: int, noise: float) -> Expert:
        """The expert of the environment that the task is from; ConfigError if it brings none."""
        owner = self._owner(task.split)
        if not isinstance(owner, Teaches):
            raise ConfigError(f"environment {owner.name!r} of split {task.split!r} brings no expert")
        return owner.expert(task, seed, noise)

    def floor(self, tasks: Sequence[Task]) -> float | None:
        """The floors of the environments that the tasks are from, by number of tasks; None if one says none."""
        total = 0.0
        for split in dict.fromkeys(task.split for task in tasks):
            owner, part = self._owner(split), [task for task in tasks if task.split == split]
            floor = owner.floor(part) if isinstance(owner, HasFloor) else None
            if floor is None:
                return None
            total += floor * len(part)
        return total / len(tasks)

    def version(self) -> Mapping[str, str]:
        """All of theirs, each key behind its environment's name; a label for each that has one."""
        found = {"environment": self.name, "splits": ", ".join(f"{s}: {owner}" for s, owner in self.splits.items())}
        labels = []
        for name, environment in self.environments.items():
            about = dict(environment.version())
            label = about.pop("label", "")
            if label:
                labels.append(f"{', '.join(s for s, owner in self.splits.items() if owner == name)}: {label}")
            found |= {f"{name}.{key}": value for key, value in about.items()}
        return {**found, "label": "; ".join(labels)}

    def _owner(self, split: str) -> Environment:
        if split not in self.splits:
            raise ConfigError(f"No split {split!r}; allowed: {', '.join(self.splits)}.{nearest(split, self.splits)}")
        return self.environments[self.splits[split]]
