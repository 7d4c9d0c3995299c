"""Commands of a text environment as calls of tools, and back: "take mug 1 from desk 2" is
take(object="mug 1", receptacle="desk 2")."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentexp.agents.naming import Names
from agentexp.agents.schemas import Schema
from agentexp.errors import ConfigError
from agentexp.types import ToolCall

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """One kind of command: its words begin with the verb, fields in braces. A verb with several
    templates takes the first that fits.

    >>> Template(tool="go", words="go to {receptacle}").fields
    ('receptacle',)
    """

    tool: str
    words: str

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(_FIELD.findall(self.words))

    @property
    def pattern(self) -> re.Pattern[str]:
        pieces = _FIELD.split(self.words)
        return re.compile("".join(f"(?P<{p}>.+?)" if i % 2 else re.escape(p) for i, p in enumerate(pieces)))


class Commands:
    """All kinds of commands. templates: tool name to the words of its command, whose first is the name.

    >>> household = Commands({"look": "look", "take": "take {object} from {receptacle}"})
    >>> household.read("take mug 1 from desk 2").arguments
    {'object': 'mug 1', 'receptacle': 'desk 2'}
    >>> household.write(ToolCall(name="take", arguments={"object": "mug 1", "receptacle": "desk 2"}))
    'take mug 1 from desk 2'
    """

    def __init__(self, templates: Mapping[str, str]) -> None:
        for tool, words in templates.items():
            if words.split(" ")[0] != tool:
                raise ConfigError(f"the command {words!r} of the tool {tool!r} must begin with that word")
        self.templates = {tool: Template(tool=tool, words=words) for tool, words in templates.items()}
        self._patterns = {tool: t.pattern for tool, t in self.templates.items()}

    def read(self, command: str) -> ToolCall | None:
        """The call that a command says; None where it is no command."""
        verb = command.partition(" ")[0]
        found = self._patterns[verb].fullmatch(command) if verb in self._patterns else None
        return ToolCall(name=verb, arguments=found.groupdict()) if found else None

    def write(self, call: ToolCall) -> str:
        """The command that says a call. ValueError says what is wrong with it."""
        template = self.templates.get(call.name)
        if template is None:
            raise ValueError(f"there is no tool {call.name!r}; there are {', '.join(self.templates)}")
        if set(call.arguments) != set(template.fields):
            raise ValueError(
                f"{call.name} takes the arguments {list(template.fields)}, not {list(call.arguments)}; write those"
            )
        odd = [k for k, v in call.arguments.items() if not isinstance(v, str) or not v.strip()]
        if odd:
            raise ValueError(f"the argument {odd[0]!r} of {call.name} must be a text that names a thing")
        words = _FIELD.sub(lambda m: str(call.arguments[m.group(1)]), template.words)
        if self.read(words) != call:
            raise ValueError(f"{words!r} is no command; an argument names one thing, such as 'mug 1'")
        return words

    def renamed(self, command: str, names: Mapping[str, str]) -> str | None:
        """The command with another verb; None where its verb has no other name."""
        verb, space, rest = command.partition(" ")
        return f"{names[verb]}{space}{rest}" if verb in names else None

    def listed(self, names: Names | None, *, as_calls: bool) -> str:
        """All kinds of commands, one a line, under their new names."""
        lines = []
        for tool, template in self.templates.items():
            new = tool if names is None else names.new[tool]
            words = _FIELD.sub(r"<\1>", template.words)
            lines.append(f"{new}({', '.join(template.fields)})" if as_calls else f"{new}{words[len(tool) :]}")
        return "\n".join(lines)

    def schemas(self) -> Sequence[Schema]:
        """The commands as tools in OpenAI's form."""
        return tuple(
            {
                "type": "function",
                "function": {
                    "name": tool,
                    "description": template.words,
                    "parameters": {
                        "type": "object",
                        "properties": {field: {"type": "string"} for field in template.fields},
                        "required": list(template.fields),
                    },
                },
            }
            for tool, template in self.templates.items()
        )
