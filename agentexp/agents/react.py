"""The ReAct agent: an observation in, a command out. Knows messages and actions; no token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agentexp.agents.parsing import Several, choose, labelled_commands, plain_command, read_thought, strip_hidden
from agentexp.types import Action, Message, Step, Task, Turn


class ReActAgent:
    r"""Shows one observation a turn and reads one command, of text environments such as ALFWorld.

    format: "plain": the generated text is the command (a small model trained from scratch);
      "react": `REASON: …` and `ACTION: …` lines (AgentPRM's style).
    think: a command `think: …` is a thought, answered "OK." without a step of the environment.
    admissible: list the commands that the environment allows (`Step.info["admissible"]`).
    reminder: repeat the task after every observation (LOOP does); the first always names it.
    inventory: say after every observation what is held (`Step.info["inventory"]`).
    several: which of several ACTION lines counts.
    lower: lower-case the command. keep: drop every character that is not among these (None: none).
    system_prompt: shown first, once; None for no system message.

    >>> agent = ReActAgent(format="react", think=True, admissible=False, reminder=True, inventory=False,
    ...                    several="last", lower=True, keep=None, system_prompt=None)
    >>> agent.parse("REASON: cold food lies there.\nACTION: Open fridge 1").command
    'open fridge 1'
    """

    def __init__(
        self,
        *,
        format: Literal["plain", "react"],  # the key of the YAML
        think: bool,
        admissible: bool,
        reminder: bool,
        inventory: bool,
        several: Several,
        lower: bool,
        keep: str | None,
        system_prompt: str | None,
    ) -> None:
        self.format = format
        self.think = think
        self.admissible = admissible
        self.reminder = reminder
        self.inventory = inventory
        self.several = several
        self.lower = lower
        self.keep = None if keep is None else frozenset(keep)
        self.system_prompt = system_prompt

    def render(self, task: Task, turns: Sequence[Turn], step: Step) -> list[Message]:
        """The system prompt and the first observation, then one observation a call."""
        observation = Message(role="user", content=self._content(task, step, first=not turns))
        if turns or self.system_prompt is None:
            return [observation]
        return [Message(role="system", content=self.system_prompt), observation]

    def parse(self, text: str) -> Action:
        """Read the command, the thought or what is wrong with the text."""
        seen = strip_hidden(text)
        if self.format == "plain":
            command = plain_command(seen)
            action = Action(text=text, command=command) if command else _empty(text)
        else:
            action = choose(text, labelled_commands(seen), self.several)
        if action.command is None:
            return action
        if self.think and read_thought(action.command) is not None:
            return Action(text=text, command=None)
        command = self._clean(action.command)
        return Action(text=text, command=command) if command else _empty(text)

    def write(self, command: str) -> str:
        """The text of a demonstrated command; a demonstrator gives no reasons."""
        return command if self.format == "plain" else f"ACTION: {command}"

    def _content(self, task: Task, step: Step, *, first: bool) -> str:
        parts = [step.observation]
        # Each part is said once: ALFWorld's opening words already name the task.
        if (first or self.reminder) and task.instruction not in step.observation:
            parts.append(f"Your task: {task.instruction}")
        if self.inventory and (held := step.info.get("inventory")) is not None:
            parts.append(f"You hold: {held}")
        if self.admissible and (commands := step.info.get("admissible")) is not None:
            parts.append(f"You can: {', '.join(commands)}")
        return "\n".join(parts)

    def _clean(self, command: str) -> str:
        if self.lower:
            command = command.lower()
        if self.keep is not None and not self.keep.issuperset(command):
            command = plain_command("".join(c for c in command if c in self.keep))
        return command


def _empty(text: str) -> Action:
    return Action(text=text, command=None, error="the action is empty; write a command")
