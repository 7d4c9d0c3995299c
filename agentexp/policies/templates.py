"""Chat templates: rendering, and proving that one only ever appends.

Rendering a whole history at every turn costs more than the environment does. A template that
prints message contents but never looks into them puts the same words around every later user
message; `probe` proves that from the template's syntax tree and measures those words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import Environment, TemplateError, nodes

from agentexp.types import Message, Role


@dataclass(frozen=True, slots=True)
class Frame:
    """What an append-only template puts around a message that follows an answer: `before`
    closes the answer's turn, `after` ends with the generation prompt. trims: contents lose their
    surrounding white space.
    """

    before: str
    after: str
    trims: bool

    def around(self, content: str) -> str:
        return self.before + (content.strip() if self.trims else content) + self.after


def render(tokenizer: Any, messages: Sequence[Message], *, prompt: bool = True) -> str:
    """Text of a conversation, with the generation prompt or without; the first message's tools as the
    template shows them."""
    if late := [n for n, m in enumerate(messages) if m.tools and n]:
        raise ValueError(
            f"message {late[0]} of a conversation has tools; a template shows those of the first message only, so "
            "later changes must be told in words"
        )
    spoken = [{"role": m.role, "content": m.content} for m in messages]
    tools = list(messages[0].tools) if messages else []
    extra: dict[str, Any] = {"tools": tools} if tools else {}
    return str(tokenizer.apply_chat_template(spoken, tokenize=False, add_generation_prompt=prompt, **extra))


def probe(tokenizer: Any, role: Role) -> Frame | None:
    """The frame of an append-only template around messages of a role, or None where that cannot be
    proved."""
    if not isinstance(tokenizer.chat_template, str) or not prints_only(tokenizer.chat_template):
        return None
    try:
        frame = _measure(tokenizer, role)
        return frame if frame is not None and _holds(tokenizer, frame, role) else None
    except TemplateError:
        return None


def prints_only(template: str) -> bool:
    """Whether message contents are printed (trimmed at most) and never looked into.

    >>> prints_only("{% for m in messages %}{{ m.role + m.content | trim }}{% endfor %}")
    True
    >>> prints_only("{% for m in messages %}{% if '<think>' in m.content %}?{% endif %}{% endfor %}")
    False
    """
    try:
        return _prints_only(Environment().parse(template))  # parsed, never rendered
    except TemplateError:
        return False


def _prints_only(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Output):
        return all(_prints_only(part) for expression in node.nodes for part in _unprinted(expression))
    if _is_content(node) or isinstance(node, _OPAQUE):
        return False
    return all(_prints_only(child) for child in node.iter_child_nodes())


def _unprinted(node: nodes.Node) -> list[nodes.Node]:
    """The parts of a printed expression that remain to be checked."""
    if isinstance(node, nodes.Add):
        return [*_unprinted(node.left), *_unprinted(node.right)]
    if isinstance(node, nodes.Concat):
        return [part for child in node.nodes for part in _unprinted(child)]
    if isinstance(node, nodes.Filter) and node.name == "trim" and node.node is not None and not node.args:
        return _unprinted(node.node)
    return [] if _is_content(node) else [node]


# Where a message may be looked into out of our sight: stored, handed on, filtered.
_OPAQUE = (nodes.Assign, nodes.AssignBlock, nodes.Call, nodes.CallBlock, nodes.Filter, nodes.FilterBlock, nodes.Macro)


def _is_content(node: nodes.Node) -> bool:
    """Whether this reads a message's content, or a key that is only known when rendering."""
    if isinstance(node, nodes.Getitem):
        if isinstance(node.arg, nodes.Const):
            return bool(node.arg.value == "content")
        return not isinstance(node.arg, nodes.Slice)
    return isinstance(node, nodes.Getattr) and node.attr == "content"


_WORDS = ("first question", "first answer", "second question", "second answer", "third question")
_TOOL = {"type": "function", "function": {"name": "f", "description": "does", "parameters": {"type": "object"}}}


def _measure(tokenizer: Any, role: Role) -> Frame | None:
    head, tail = _next(tokenizer, [], _WORDS[:3], ["user", role])
    before, found, after = tail.partition(_WORDS[2])
    if not head or not found:
        return None
    _, padded = _next(tokenizer, [], (*_WORDS[:2], f" \n{_WORDS[2]}\n "), ["user", role])
    trims = padded == tail
    return Frame(before=before, after=after, trims=trims)


def _holds(tokenizer: Any, frame: Frame, role: Role) -> bool:
    """Later in the conversation, behind a system message, with tools, and after messages of either kind,
    the same frame stands."""
    system = Message(role="system", content="be brief")
    for first in ([], [system]):
        for tools in ((), (_TOOL,)):
            for roles in (["user", role], ["user", role, role], ["user", "user", role]):
                words = _WORDS[: 2 * len(roles) - 1]
                for content in (words[-1], f" \n{words[-1]} \n"):
                    try:
                        _, tail = _next(tokenizer, first, (*words[:-1], content), roles, tools)
                    except TemplateError:
                        if first:  # no system role in this template: it will never be rendered
                            continue
                        raise
                    if tail != frame.around(content):
                        return False
    return True


def _next(
    tokenizer: Any, first: Sequence[Message], words: Sequence[str], roles: Sequence[Role], tools: Sequence[Any] = ()
) -> tuple[str, str]:
    """(all up to the last answer, what comes behind it) or two empty texts if history changed."""
    said = [
        *first,
        *(Message(role="assistant" if i % 2 else roles[i // 2], content=w) for i, w in enumerate(words)),
    ]
    said[0] = replace(said[0], tools=tuple(tools))
    earlier = render(tokenizer, said[:-2]) + said[-2].content
    whole = render(tokenizer, said)
    return (earlier, whole.removeprefix(earlier)) if whole.startswith(earlier) else ("", "")
