"""Each mutation of the code must break a named test. The mutated copy of the package lies in a
temporary folder; the tests run against it in a fresh process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutation:
    """In `file`, `old` becomes `new`; then `test` must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTATIONS = [
    Mutation(
        "K for K-1",
        "advantages.py",
        "total, others = math.fsum(rewards), len(rewards) - 1",
        "total, others = math.fsum(rewards), len(rewards)",
        "tests/unit/test_advantages.py",
    ),
    Mutation(
        "the own reward stays in the baseline",
        "advantages.py",
        "r - (total - r) / others",
        "r - total / others",
        "tests/unit/test_advantages.py",
    ),
    Mutation(
        "flat groups are not exactly zero",
        "advantages.py",
        "if min(rewards) == max(rewards):",
        "if False:",
        "tests/unit/test_advantages.py",
    ),
    Mutation(
        "min and max swapped",
        "losses/ppo.py",
        "torch.minimum(rho * advantage",
        "torch.maximum(rho * advantage",
        "tests/unit/losses",
    ),
    Mutation(
        "the clip is one-sided",
        "losses/ppo.py",
        "rho.clamp(low, 1.0 + epsilon)",
        "rho.clamp(max=1.0 + epsilon)",
        "tests/unit/losses",
    ),
    Mutation(
        "the mask is dropped",
        "losses/ppo.py",
        "difference = (logps - old_logps).masked_fill(~mask, 0.0)",
        "difference = logps - old_logps",
        "tests/unit/losses",
    ),
    Mutation(
        "turns run into each other",
        "losses/ppo.py",
        "index = turn.clamp(min=0)",
        "index = turn.clamp(min=0, max=0)",
        "tests/unit/losses",
    ),
    Mutation(
        "the sign of the policy gradient",
        "losses/ppo.py",
        "total = -(w * objective).sum()",
        "total = (w * objective).sum()",
        "tests/unit/losses",
    ),
    Mutation(
        "k3 the other way round",
        "losses/ppo.py",
        "d = (reference_logps - logps)",
        "d = (logps - reference_logps)",
        "tests/unit/losses",
    ),
    Mutation(
        "read tokens are trained",
        "packing.py",
        "mask += [False] * read + [trained]",
        "mask += [True] * read + [trained]",
        "tests/unit/test_packing.py",
    ),
    Mutation(
        "a rollout's length counts",
        "packing.py",
        "m / (mine * len(trained))",
        "m / len(trained)",
        "tests/unit/test_packing.py",
    ),
    Mutation(
        "log-probs are one token off",
        "learning/logps.py",
        "states[rows, columns - 1]",
        "states[rows, columns]",
        "tests/unit/learning",
    ),
    Mutation(
        "the trainer forgets the temperature",
        "learning/logps.py",
        "if temperature != 1.0:",
        "if False:",
        "tests/unit/learning",
    ),
    Mutation(
        "the optimiser is not resumed",
        "learning/optimiser.py",
        'self.optimizer.load_state_dict(state["optimizer"])',
        "pass",
        "tests/unit/learning",
    ),
    Mutation(
        "the schedule is not resumed",
        "learning/optimiser.py",
        'self.steps, self.skipped = int(state["steps"])',
        'self.steps, self.skipped = 0 * int(state["steps"])',
        "tests/unit/learning",
    ),
    Mutation(
        "a broken gradient is applied",
        "learning/optimiser.py",
        "if bool(torch.isfinite(norm)):",
        "if True:",
        "tests/unit/learning",
    ),
    Mutation(
        "the cache forgets what was sampled",
        "policies/hf.py",
        "self.reader.hold(requests[i].episode, [tokens[i]])",
        "pass",
        "tests/unit/policies/test_hf.py",
    ),
    Mutation(
        "padding is seen",
        "policies/kv_cache.py",
        "<= self._at[:, :, None]",
        "<= self._at[:, -1:, None]",
        "tests/unit/policies/test_hf.py",
    ),
    Mutation(
        "old keys outlive an update",
        "policies/reader.py",
        "self._row, self._held, self._cache = {}, {}, None",
        "pass",
        "tests/unit/policies/test_hf.py",
    ),
    Mutation(
        "advantages of the nominal group",
        "algorithms/loop.py",
        "members = [t for t in group.scored if t.outcome is not None and math.isfinite(t.outcome.reward)]",
        "members = list(group.trajectories)",
        "tests/unit/algorithms",
    ),
    Mutation(
        "old log-probs are the sampler's",
        "algorithms/loop.py",
        'if self.old_logps == "learner":',
        "if False:",
        "tests/unit/algorithms",
    ),
    Mutation(
        "the control is not shuffled",
        "algorithms/loop.py",
        "if self.shuffle_advantages:",
        "if False:",
        "tests/unit/algorithms",
    ),
    Mutation(
        "the released discount",
        "step_values.py",
        'if discount == "to_go":',
        'if discount != "to_go":',
        "tests/unit/test_step_values.py",
    ),
    Mutation(
        "visits are not averaged",
        "step_values.py",
        "q=means[here, action],",
        "q=value,",
        "tests/unit/test_step_values.py",
    ),
    Mutation(
        "InversePRM's sign as printed",
        "losses/process_reward.py",
        "signed = delta.where(expert, -delta)",
        "signed = delta.where(expert, delta)",
        "tests/unit/losses/test_process_reward.py",
    ),
    Mutation(
        "next actions slip by one",
        "algorithms/inverse_fit.py",
        "branch=tuple(t if draw and t < last else None for t in kept),",
        "branch=tuple(max(0, t - 1) if draw and t < last else None for t in kept),",
        "tests/unit/algorithms/test_inverse_fit.py",
    ),
    Mutation(
        "branches see each other",
        "learning/trees.py",
        "seen[row, at:end, branch.at : at] = False",
        "seen[row, at:end, branch.at : trunk] = False",
        "tests/unit/learning/test_trees.py",
    ),
    Mutation(
        "a branch continues the trunk's end",
        "learning/trees.py",
        "parent[row, at] = branch.at - 1",
        "parent[row, at] = trunk - 1",
        "tests/unit/learning/test_trees.py",
    ),
    Mutation(
        "the kept branch is another",
        "policies/kv_cache.py",
        "slots = start + torch.arange(tokens, device=self.lengths.device) * of + branch",
        "slots = start + torch.arange(tokens, device=self.lengths.device) * of",
        "tests/unit/policies/test_best_of_n.py",
    ),
    Mutation(
        "best of n plays the worst",
        "policies/best_of_n.py",
        "best = max(range(len(values))",
        "best = min(range(len(values))",
        "tests/unit/policies/test_best_of_n.py",
    ),
    Mutation(
        "the worst is chosen",
        "algorithms/online_dpo.py",
        "branches += [tree.branches[k * n + best], tree.branches[k * n + worst]]",
        "branches += [tree.branches[k * n + worst], tree.branches[k * n + best]]",
        "tests/unit/algorithms/test_online_dpo.py",
    ),
    Mutation(
        "the state of the APIs is not compared",
        "envs/bfcl/session.py",
        "same_state(self._mine, self._gold) and contained",
        "contained",
        "tests/unit/envs/bfcl/test_session.py",
    ),
    Mutation(
        "withheld tools run",
        "envs/bfcl/session.py",
        "if call.name in self._talk.callable[self._turn]:",
        "if True:",
        "tests/unit/envs/bfcl/test_session.py",
    ),
    Mutation(
        "sessions share what an API's module hands out",
        "envs/bfcl/world.py",
        "World(pickle.loads(frozen), tools)",
        "World(copy.copy(apis), tools)",
        "tests/unit/envs/bfcl/test_session.py",
    ),
    Mutation(
        "an answer that was seen once counts twice",
        "envs/bfcl/world.py",
        "return not Counter(wanted) - Counter(seen)",
        "return set(wanted) <= set(seen)",
        "tests/unit/envs/bfcl/test_world.py",
    ),
    Mutation(
        "True passes for 1",
        "envs/bfcl/matching.py",
        "found: type = type(value)",
        "found: type = expected if isinstance(value, expected) else type(value)",
        "tests/unit/envs/bfcl/test_matching.py",
    ),
    Mutation(
        "the easiest wrong action is the negative",
        "algorithms/hard_negatives.py",
        "actions[max(range(len(scores))",
        "actions[min(range(len(scores))",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "the expert's own action becomes a negative",
        "algorithms/hard_negatives.py",
        "if not (same or",
        "if not (False or",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "per token whatever the key says",
        "algorithms/hard_negatives.py",
        'if self.hardness == "mean" else v for',
        'if self.hardness == "sum" else v for',
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "a pair's sides are swapped",
        "algorithms/agentic_dpo.py",
        "better = [b + s for b, s in zip(plus, swap, strict=True)]\n        worse = [b + 1 - s for",
        "better = [b + 1 - s for b, s in zip(plus, swap, strict=True)]\n        worse = [b + s for",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "the anchor imitates negatives too",
        "algorithms/agentic_dpo.py",
        "if b == 0 or members[b - 1] != n]",
        "if n >= 0]",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "the last wrong step, not the first",
        "algorithms/agentic_dpo.py",
        "turn < first[n].visit.order[1]",
        "turn > first[n].visit.order[1]",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "the reference is not kept by a resume",
        "algorithms/agentic_dpo.py",
        'self.snapshot if self.reference == "warm_up" else None',
        "None",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "random moves are imitated",
        "algorithms/expert_pool.py",
        "for k, turn in enumerate(t.turns) if turn.deliberate",
        "for k, turn in enumerate(t.turns) if turn",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "over-long states are learnt",
        "algorithms/expert_pool.py",
        "> self.max_context_tokens:",
        "> 10**9:",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "a view is not asked to read its own words",
        "algorithms/expert_pool.py",
        'if not equivalent(read := agent.parse(text), decided, "latent"):',
        "if not (read := agent.parse(text)):",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "the latest of equal rounds",
        "algorithms/round_choice.py",
        "if success > self.best_success:",
        "if success >= self.best_success:",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "the next round begins with the best",
        "algorithms/round_choice.py",
        "        model.load_weights(self.trained)\n",
        "        pass\n",
        "tests/unit/algorithms/test_agentic_dpo.py",
    ),
    Mutation(
        "the shorter action scales the contrast",
        "losses/preference.py",
        "longest = chosen_n.maximum(rejected_n)",
        "longest = chosen_n.minimum(rejected_n)",
        "tests/unit/losses/test_preference.py",
    ),
    Mutation(
        "SimPO without its margin",
        "losses/preference.py",
        "self.beta * margin - self.gamma",
        "self.beta * margin",
        "tests/unit/losses/test_preference.py",
    ),
    Mutation(
        "KTO without its KL",
        "losses/preference.py",
        "pairs.chosen - pairs.reference_chosen - pairs.kl",
        "pairs.chosen - pairs.reference_chosen",
        "tests/unit/losses/test_preference.py",
    ),
    Mutation(
        "DFT's factor learns",
        "losses/imitation.py",
        "logps.detach().exp()",
        "logps.exp()",
        "tests/unit/losses/test_imitation.py",
    ),
    Mutation(
        "a failed trajectory's row counts for the expert",
        "algorithms/eto.py",
        "k >= len(p.chosen)",
        "k > len(p.chosen)",
        "tests/unit/algorithms/test_eto.py",
    ),
    Mutation(
        "sessions of a shop share records",
        "envs/tau/tables.py",
        "deepcopy(super().__getitem__(key))",
        "super().__getitem__(key)",
        "tests/unit/envs/tau/test_tables.py",
    ),
    Mutation(
        "conversations that never ended are scored",
        "envs/tau/reward.py",
        "success = ended and right",
        "success = right",
        "tests/unit/envs/tau/test_environment.py",
    ),
    Mutation(
        "what had to be said is not looked at",
        "envs/tau/reward.py",
        "(told or ",
        "(True or ",
        "tests/unit/envs/tau/test_environment.py",
    ),
    Mutation(
        "calculate runs the release's eval",
        "envs/tau/tau2.py",
        'if call.name == "calculate":',
        'if call.name == "":',
        "tests/unit/envs/tau/test_environment.py",
    ),
    Mutation(
        "the floor is that of the split, not of the games played",
        "evaluation/evaluate.py",
        "self.environment.floor(tasks)",
        "self.environment.floor(self._order)",
        "tests/unit/evaluation/test_evaluate.py",
    ),
    Mutation(
        "an argument may hide the rest of a call",
        "agents/renderings.py",
        'return text.replace("think>", "think\\\\u003e")',
        "return text",
        "tests/unit/agents/test_tools.py",
    ),
    Mutation(
        "the released code's own format is not read",
        "agents/reading.py",
        '("arguments", "parameters", "args", "input")',
        '("arguments", "args", "input")',
        "tests/unit/agents/test_renderings.py::test_other_spellings_of_the_same_call",
    ),
    Mutation(
        "brackets in strings count",
        "agents/python_calls.py",
        'if c in "\\"\'":',
        'if c in "":',
        "tests/unit/agents/test_renderings.py::test_round_trip",
    ),
    Mutation(
        "arguments do not matter",
        "agents/equivalence.py",
        'return ("calls", *(c.canonical for c in action.calls))',
        'return ("calls", *(c.name for c in action.calls))',
        "tests/unit/agents/test_equivalence.py",
    ),
    Mutation(
        "a tool's old name is right in a view that renamed it",
        "agents/views.py",
        "        if unknown:  #",
        "        if False:  #",
        "tests/unit/agents/test_views.py::test_renamed_tools",
    ),
    Mutation(
        "two tools may get one name",
        "agents/naming.py",
        "            taken.add(chosen)\n",
        "",
        "tests/unit/agents/test_views.py::test_new_names_are_one_for_one_and_nobody_s_old_name",
    ),
    Mutation(
        "new tools are told again and again",
        "agents/tools.py",
        'and f"\\n{written(t, self._style)}\\n" not in told',
        "",
        "tests/unit/agents/test_tools.py",
    ),
    Mutation(
        "the expert's own call is shown to fail",
        "agents/recovery.py",
        "[t for t in self._tools if t != calls[0].name]",
        "list(self._tools)",
        "tests/unit/agents/test_views.py::test_a_mistake_is_never_the_expert_s_own_call",
    ),
    Mutation(
        "a renamed tool's own name is lost",
        "evaluation/perturbations.py",
        "names={**kept, **back},",
        "names=kept,",
        "tests/unit/evaluation/test_perturbations.py::test_the_right_call_stays_sayable",
    ),
]


def run(package: Path, test: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "--rootdir",
        str(package),
        test,
    ]
    return subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)


def copy_of_the_project(to: Path) -> Path:
    shutil.copytree(ROOT / "agentexp", to / "agentexp", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "tests", to / "tests", ignore=shutil.ignore_patterns("__pycache__", "e2e", "real", "mutation")
    )
    shutil.copy(ROOT / "pyproject.toml", to)
    return to


@pytest.mark.slow
def test_without_a_mutation_the_tests_pass(tmp_path: Path) -> None:
    """The control: what the mutations break is whole before."""
    package = copy_of_the_project(tmp_path)
    for test in sorted({m.test for m in MUTATIONS}):
        done = run(package, test)
        assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_mutation_is_noticed(mutation: Mutation, tmp_path: Path) -> None:
    package = copy_of_the_project(tmp_path)
    path = package / "agentexp" / mutation.file
    text = path.read_text()
    assert text.count(mutation.old) == 1, f"{mutation.old!r} stands {text.count(mutation.old)} times in {mutation.file}"
    path.write_text(text.replace(mutation.old, mutation.new))
    done = run(package, mutation.test)
    assert done.returncode == 1, f"{mutation.name}: no test noticed\n{done.stdout[-2000:]}"
