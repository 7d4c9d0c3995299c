"""Every kind of environment, played by its expert and shown anew in every view: what was decided stays."""

from __future__ import annotations

from typing import Any

import pytest

from agentexp.agents.equivalence import equivalent
from agentexp.agents.recovery import RecoveryView
from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.tools import ToolAgent
from agentexp.agents.views import CommandView, ToolView
from agentexp.algorithms.expert_pool import shown
from agentexp.envs.alfworld.commands import templates
from agentexp.envs.alfworld.environment import GeneratedAlfWorld
from agentexp.policies.chat import Chat
from agentexp.rollouts.demonstrations import demonstrate
from tests.toy_bfcl import OPTIONS, ToyBfcl
from tests.toy_tau import ToyTau
from tests.toys import CHATML, bytes_tokenizer, react


def commands(format: Any, rename: bool) -> CommandView:
    return CommandView(
        name=f"{format} {rename}", format=format, rename=rename, commands=templates(), shows="all", compact=False
    )


def recovery(view: Any, table: Any) -> RecoveryView:
    return RecoveryView(name="recovery", view=view, share=0.5, error="It failed.", thought=None, commands=table)


TOOL_VIEWS = [
    *(ToolView(name=f"{f} {r}", format=f, rename=r) for f in RENDERINGS for r in (False, True)),  # type: ignore[arg-type]
    recovery(ToolView(name="inner", format="json", rename=True), None),
]
COMMAND_VIEWS = [*(commands(f, r) for f in ("command", *RENDERINGS) for r in (False, True))]
COMMAND_VIEWS.append(recovery(commands("json", True), templates()))  # type: ignore[arg-type]
TOOLS = ToolAgent(format="react", schemas="json", results="tool", words=True, compact=False, system_prompt=None)
PLACES: dict[str, tuple[Any, Any, list[Any]]] = {
    "made-up bfcl": (lambda: ToyBfcl(**OPTIONS), TOOLS, TOOL_VIEWS),
    "made-up tau retail": (lambda: ToyTau(release="tau_bench"), TOOLS, TOOL_VIEWS),
    "generated alfworld": (
        lambda: GeneratedAlfWorld(engine="pure", admissible=True, explore=0.0, train_games=4, valid_games=1),
        react(format="react"),
        COMMAND_VIEWS,
    ),
}


@pytest.mark.parametrize("place", list(PLACES))
def test_the_expert_in_every_view(place: str) -> None:
    make, agent, views = PLACES[place]
    environment, chat = make(), Chat(tokenizer=bytes_tokenizer(CHATML))
    for task in environment.tasks("train")[:2]:
        played = demonstrate(
            environment=environment, agent=agent, chat=chat, task=task, sample=0, seed=0, noise=0.0, max_turns=40
        )
        assert played.outcome is not None
        assert played.outcome.success  # what the agent writes, the environment understands
        first = environment.start(task, 0).first
        decided = [turn.action.command for turn in played.turns]
        prompts = set()
        for view in views:
            through = view.through(agent, task.id, decided)
            again = shown(played, first, through, chat, view.name)  # raises where a view cannot read itself
            assert again.segments == 1
            assert [turn.action for turn in again.turns] == [turn.action for turn in played.turns]
            for old, new in zip(played.turns, again.turns, strict=True):
                assert equivalent(through.parse(new.completion.text), old.action, "latent")
                assert equivalent(through.parse(new.completion.text), old.action, "tool_name")
            prompts.add(tuple((turn.prompt_ids, turn.completion.ids) for turn in again.turns))
        assert len(prompts) == len(views)  # control: no two views show the same
