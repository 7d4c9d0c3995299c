"""The environment's own expert plays: trajectories of the same form as sampled ones."""

from __future__ import annotations

from agentexp.agents.base import Agent
from agentexp.envs.base import Environment, Teaches
from agentexp.errors import ConfigError
from agentexp.policies.chat import Chat
from agentexp.rollouts.tasks import TaskSampler
from agentexp.seeding import seed_for
from agentexp.types import StopReason, Task, Trajectory, Turn


def expert_play(
    *,
    environment: Environment,
    agent: Agent,
    chat: Chat,
    split: str,
    count: int,
    noise: float,
    max_turns: int,
    seed: int,
) -> list[Trajectory]:
    """`count` episodes of the expert on shuffled tasks of a split: the same for the same arguments, so
    all that learns from demonstrations can learn from the same ones."""
    tasks = TaskSampler(tasks=environment.tasks(split), seed=seed_for(seed, "sft", "tasks"))
    return [
        demonstrate(
            environment=environment,
            agent=agent,
            chat=chat,
            task=task,
            sample=n,
            seed=seed_for(seed, "sft", "expert", n),
            noise=noise,
            max_turns=max_turns,
        )
        for n, task in enumerate(tasks.next(count))
    ]


def demonstrate(
    *,
    environment: Environment,
    agent: Agent,
    chat: Chat,
    task: Task,
    sample: int,
    seed: int,
    noise: float,
    max_turns: int,
) -> Trajectory:
    """One episode of the expert. Its completions are "scripted": ids of the written command and
    the end of turn, no log-probs; `deliberate` marks which were not random moves.
    """
    if not isinstance(environment, Teaches):
        raise ConfigError(
            f"environment {environment.name!r} brings no expert (a method `expert(task, seed, noise)`); "
            "demonstrations need one"
        )
    expert = environment.expert(task, seed, noise)
    session = environment.start(task, seed)
    conversation = chat.open()
    turns: list[Turn] = []
    try:
        step = session.first
        while not step.done and len(turns) < max_turns:
            command, deliberate = expert.act(step)
            text = agent.write(command)
            messages = agent.render(task, turns, step)
            prompt_ids = conversation.extend(messages)
            completion = chat.scripted(text)
            conversation.adopt(completion)
            action = agent.parse(text)
            step = session.step(action)
            turns.append(
                Turn(
                    prompt_ids=prompt_ids,
                    completion=completion,
                    action=action,
                    step=step,
                    segment=conversation.segment,
                    messages=tuple(messages),
                    deliberate=deliberate,
                )
            )
        return Trajectory(
            task=task,
            sample=sample,
            seed=seed,
            turns=tuple(turns),
            outcome=session.outcome(),
            stop=StopReason.DONE if step.done else StopReason.MAX_TURNS,
            segments=conversation.segment + 1,
        )
    finally:
        session.close()
