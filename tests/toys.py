"""Stand-ins that tests share: tokenizers, chat templates, agents, rollouts of a scripted policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from agentexp.agents.react import ReActAgent
from agentexp.learning.words import word_tokenizer
from agentexp.policies.chat import Chat
from agentexp.policies.scripted import ScriptedPolicy
from agentexp.rollouts.collect import Rollouts
from agentexp.types import Request

WORDS = ["door 1", "door 2", "door 3", "open", "find", "the", "key", "task", "hold", "nothing", "can", "happens"]


def words(extra: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """The project's word-level tokenizer over the words of doors."""
    return word_tokenizer([*WORDS, *extra])


CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Llama 3 trims contents.
TRIMMING = (
    "{{ '<|bos|>' }}{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n\n' + message['content'] | trim + '<|im_end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n\n' }}{% endif %}"
)
# Qwen 3 forgets the thoughts of earlier answers once the user speaks again.
FORGETTING = (
    "{%- set ns = namespace(last=0) %}"
    "{%- for message in messages %}"
    "{%- if message.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}"
    "{%- for message in messages %}{%- set content = message.content %}"
    "{%- if message.role == 'assistant' and loop.index0 < ns.last and '</think>' in content %}"
    "{%- set content = content.split('</think>')[-1].lstrip('\n') %}{%- endif %}"
    "{{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)


def bytes_tokenizer(template: str, merges: Sequence[tuple[str, str]] = ()) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer with few merges, as real models have, and a chat template."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*alphabet, *(a + b for a, b in merges)])}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|end|>",
        extra_special_tokens=["<|im_start|>", "<|bos|>"],
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = template
    return fast


def react(**changes: Any) -> ReActAgent:
    """A plain agent, with changes."""
    options: dict[str, Any] = {
        "format": "plain", "think": False, "admissible": False, "reminder": False, "inventory": False,
        "several": "last", "lower": True, "keep": None, "system_prompt": None,
    }  # fmt: skip
    return ReActAgent(**{**options, **changes})


def rollouts(
    environment: Any,
    say: Callable[[Request], str] = lambda request: f"open door {1 + request.seed % 3}",
    **changes: Any,
) -> Rollouts:
    """Rollouts of a scripted policy (a random door by default), with changes."""
    tokenizer = words()
    options: dict[str, Any] = {
        "environment": environment, "agent": react(), "chat": Chat(tokenizer=tokenizer),
        "policy": ScriptedPolicy(tokenizer=tokenizer, say=say),
        "max_turns": 6, "max_new_tokens": 8, "max_context_tokens": 512, "slots": 16, "workers": 2,
        "step_timeout_s": 5.0, "retries": 1, "max_dead_groups": 2, "truncation": "keep",
    }  # fmt: skip
    return Rollouts(**{**options, **changes})


def tool_schema(name: str, description: str, parameters: dict[str, str]) -> dict[str, Any]:
    """A tool in OpenAI's form whose parameters, all required, have these types."""
    properties = {key: {"type": kind, "description": f"the {key}"} for key, kind in parameters.items()}
    inner = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": inner}}
