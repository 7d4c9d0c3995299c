"""Messages to ids, episode by episode. Tokens in, tokens out: what was sampled stays as sampled.

A conversation's ids only grow: newly rendered text is read behind the ids that are already there.
Where a chat template rewrites what was said before (Qwen3 drops old thoughts), that cannot be; then
a new segment starts with the whole prompt rendered anew, and is counted. Knows the tokenizer and
its template; no model, no environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from jinja2 import TemplateError

from agentexp.errors import ConfigError
from agentexp.policies.templates import Frame, probe, render
from agentexp.types import Completion, Message

_REMEMBERED_TEXTS = 1 << 15  # encodings kept: observations repeat often, first prompts in each group


class Chat:
    """Opens conversations for one tokenizer and its chat template.

    eos_ids: the ids that end an assistant's turn: what the template closes it with, if that is a
    special token, then the tokenizer's own end of sequence.
    """

    eos_ids: tuple[int, ...]

    def __init__(self, *, tokenizer: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigError(
                f"the tokenizer {getattr(tokenizer, 'name_or_path', '') or type(tokenizer).__name__!r} has no chat "
                "template; use an instruction-tuned model or set tokenizer.chat_template"
            )
        if tokenizer.eos_token_id is None:
            raise ConfigError("the tokenizer has no end-of-sequence token; set tokenizer.eos_token")
        self.tokenizer = tokenizer
        self.frame: Frame | None = probe(tokenizer, "user")
        self.tool_frame: Frame | None = probe(tokenizer, "tool")
        self.encode_text = lru_cache(_REMEMBERED_TEXTS)(self._encode)
        self.eos_ids = self._turn_ends()
        self.eos_texts = {i: str(tokenizer.convert_ids_to_tokens(i)) for i in self.eos_ids}

    def open(self) -> Conversation:
        """A conversation in which nothing has been said."""
        return Conversation(self)

    def scripted(self, text: str) -> Completion:
        """A completion that nobody sampled: a demonstrator's words with the end of turn, no log-probs.

        Raises ConfigError where the tokenizer loses a word: a model could never say such a text.
        """
        said = self.encode_text(text)
        if (heard := self.tokenizer.decode(said)) != text:
            raise ConfigError(
                f"the tokenizer reads {text!r} as {heard!r}, so a model cannot learn to say it; "
                "add the missing words to its vocabulary (model.words), or choose another model"
            )
        ids = (*said, self.eos_ids[0])
        return Completion(ids=ids, logprobs=(float("nan"),) * len(ids), text=text, finish="scripted", policy_version=0)

    def _encode(self, text: str) -> tuple[int, ...]:
        """Ids of text, special tokens in it recognised, none added."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            return tuple(self.tokenizer.encode(text, add_special_tokens=False))
        if backend.truncation or backend.padding:  # left behind by another user of the same tokenizer
            backend.no_truncation()
            backend.no_padding()
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    def _turn_ends(self) -> tuple[int, ...]:
        answer = "answer"
        said = [Message(role="user", content="question"), Message(role="assistant", content=answer)]
        closing = render(self.tokenizer, said, prompt=False).rpartition(answer)[2]
        ends = [i for i in self._encode(closing)[:1] if i in self.tokenizer.all_special_ids]
        return tuple(dict.fromkeys([*ends, int(self.tokenizer.eos_token_id)]))


@dataclass(frozen=True, slots=True)
class _Read:
    """What `extend` decided: the text to read, and whether it replaces all that was there."""

    text: str
    broke: bool


class Conversation:
    """One episode's ids: `extend` reads messages, `adopt` keeps a completion, in turns.

    ids: the whole prompt of the current segment. segment: its number. breaks: how often the
    template rewrote history (always equal to segment).
    """

    def __init__(self, chat: Chat) -> None:
        self.ids: list[int] = []
        self.segment = 0
        self._chat = chat
        self._said: list[Message] = []
        self._rendered: str | None = None  # all of it up to the last generation prompt; None: not kept
        self._answer: Completion | None = None

    @property
    def breaks(self) -> int:
        return self.segment

    def extend(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Read new messages and the generation prompt; the newly read ids, never none."""
        if self.ids and self._answer is None:
            raise RuntimeError("Conversation.extend was called twice without a completion between; call adopt first")
        read = self._first(messages) if self._answer is None else self._next(messages, self._answer)
        delta = self._chat.encode_text(read.text)
        if not delta:
            raise RuntimeError(f"the chat template rendered nothing that can be read for {list(messages)}")
        if read.broke:
            self.segment += 1
            self.ids = list(delta)
        else:
            self.ids.extend(delta)
        self._answer = None
        return delta

    def adopt(self, completion: Completion) -> None:
        """Keep a completion's ids, exactly as they were sampled."""
        if self._answer is not None or not self.ids:
            raise RuntimeError("Conversation.adopt was called without a prompt to answer; call extend first")
        self.ids.extend(completion.ids)
        self._said.append(Message(role="assistant", content=completion.text))
        self._answer = completion

    def _first(self, messages: Sequence[Message]) -> _Read:
        self._said.extend(messages)
        self._rendered = self._render(messages)
        return _Read(self._rendered, broke=False)

    def _next(self, messages: Sequence[Message], answer: Completion) -> _Read:
        frames = {"user": self._chat.frame, "tool": self._chat.tool_frame}
        frame = frames.get(messages[0].role) if len(messages) == 1 and not messages[0].tools else None
        if frame is not None:
            self._said.append(messages[0])
            self._rendered = None
            return _Read(self._behind(frame.around(messages[0].content), answer), broke=False)
        before = self._rendered or render(self._chat.tokenizer, self._said[:-1])
        self._said.extend(messages)
        self._rendered = now = self._render(messages)
        for kept in (answer.text, answer.text.strip()):  # some templates trim what was said
            if now.startswith(before + kept):
                return _Read(self._behind(now[len(before) + len(kept) :], answer), broke=False)
        return _Read(now, broke=True)

    def _render(self, new: Sequence[Message]) -> str:
        """All that was said; `new` of it is rendered for the first time. Raises ConfigError where the
        template has no words for tools or their results."""
        results = [m.content.strip() for m in new if m.role == "tool"]
        try:
            text = render(self._chat.tokenizer, self._said)
        except TemplateError as error:
            if results:
                raise ConfigError(
                    f"the chat template knows no tool results ({error}); set agent.results=user"
                ) from error
            raise
        if not all(result in text for result in results):
            raise ConfigError("the chat template leaves out tool results; set agent.results=user")
        if new and new[0].tools:
            bare = render(self._chat.tokenizer, [replace(self._said[0], tools=()), *self._said[1:]])
            if bare == text:
                raise ConfigError("the chat template shows no tools; set agent.schemas to json or text")
        return text

    def _behind(self, text: str, answer: Completion) -> str:
        """`text` without the end of turn where the policy sampled that itself."""
        end = self._chat.eos_texts.get(answer.ids[-1]) if answer.ids else None
        return text.removeprefix(end) if end is not None else text
