"""Pitfall 15: what users type wrong with Hydra. Each is an error, exit status 2, without a traceback,
before torch is imported, that names the file, the key and the nearest valid one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentexp.cli.main import main

TRAPS = {
    # typed: what the message must hold
    "environment=alfwrold": ["conf/environment/", "'alfwrold'", "Did you mean 'alfworld'", "alfworld_generated"],
    "environment.name=alfworld": ["'alfworld'", "group environment", "write environment=alfworld"],
    "environment.name=x": [
        "conf/environment/alfworld_generated.yaml",
        "'environment.name'",
        "write environment=OPTION",
    ],
    "enviroment=alfworld": ["conf/config.yaml", "'enviroment'", "Did you mean 'environment'"],
    "algorithm.learner=foo": ["algorithm.learner is 'foo'", "_target_", "agentexp.learning.learner.Learner"],
    "algorithm.loss=ppo": ["algorithm.loss is 'ppo'", "agentexp.losses.ppo.ClippedPolicyLoss"],
    "warm_start=sft": ["write algorithm@warm_start=sft"],
    "experiment.loop=rloo": ["write experiment=loop/rloo"],
    "algorithm/loss=ppo": ["no group 'algorithm/loss'", "algorithm.loss=…"],
    "+typo=1": ["typo", "command line: +typo=1", "config.yaml"],
    "+algorithm.typo=1": ["algorithm.typo", "agentexp.algorithms.loop.Loop"],
    "+algorithm.learner.lrr=1": ["algorithm.learner.lrr", "Did you mean 'lr'"],
    "typo=1": ["conf/config.yaml", "'typo'"],
    "sead=1": ["Did you mean 'seed'"],
    "algorithm.learner.lrr=1": ["conf/algorithm/loop.yaml", "'lrr'", "Did you mean 'lr'"],
    "algorithm.lerner.lr=1": ["conf/algorithm/loop.yaml", "'lerner'", "Did you mean 'learner'"],
    "algorithm.learner.lr=nope": ["algorithm.learner.lr is 'nope'", "command line", "needs float"],
    "algorithm.epochs=2.5": ["algorithm.epochs is 2.5", "needs int"],
    "algorithm.epochs=true": ["algorithm.epochs is True", "needs int"],
    "algorithm.shuffle_advantages=1": ["needs bool"],
    "algorithm.advantage=leave_one_ot": ["Did you mean 'leave_one_out'", "group_normalised"],
    "algorithm.split=null": ["algorithm.split is None", "needs str"],
    "seed=one": ["seed is 'one'", "int is needed"],
    "~model": ["model is missing"],
    "~algorithm.split": ["algorithm.split is missing"],
    "model=null": ["model is a group"],
    "+environment=alfworld": ["chosen already", "environment=alfworld"],
    "environment._target_=os.system": ["os.system", "only targets of agentexp", "plugins=[os]"],
    "environment._target_=agentexp.envs.alfworld.environment.AlfWorl": ["Did you mean 'AlfWorld'"],
    "environment._target_=agentexp.agents.react.ReActAgent": ["it lacks", "agentexp.envs.base.Environment"],
    "algorithm.loss._target_=agentexp.learning.learner.Learner": ["it is no agentexp.losses.ppo.ClippedPolicyLoss"],
    "plugins=[no_such_package]": ["no_such_package", "install it"],
    "plugins=alfworld": ["a list of package names"],
    "seed=0,1": ["several values", "agentexp train -m"],
    "run.iterations=${nothing}": ["run.iterations", "nothing"],
    "run.iterations=???": ["run.iterations", "Missing mandatory value"],
    "a=(b": ["cannot be read"],
    "seed": ["no override", "key=value"],
}


@pytest.mark.parametrize("typed", TRAPS)
def test_trap_is_an_error_that_helps(typed: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    loaded_before = "torch" in sys.modules
    status = main(["train", f"output_root={tmp_path}", typed])
    said = capsys.readouterr()
    assert status == 2
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    for part in TRAPS[typed]:
        assert part in said.err
    assert ("torch" in sys.modules) == loaded_before
    assert not list(tmp_path.iterdir())  # nothing is written before all is checked


def test_all_that_is_wrong_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "algorithm.learner.lr=nope", "+typo=1", "model.layers=x"]) == 2
    said = capsys.readouterr().err
    assert [part in said for part in ("algorithm.learner.lr", "typo", "model.layers")] == [True] * 3


def test_an_int_is_a_float_and_a_right_configuration_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--check", "algorithm.learner.lr=1", "seed=7", "model=tiny"]) == 0
    assert "seed: 7" in capsys.readouterr().out


def test_options_may_stand_between_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "seed=7", "--check", "algorithm=rloo"]) == 0
    assert "seed: 7" in capsys.readouterr().out
    assert main(["train", "--chekc"]) == 2
    assert "unknown option --chekc" in capsys.readouterr().err
