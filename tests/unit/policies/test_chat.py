"""Conversations: tokens in, tokens out; rewritten history is noticed (pitfalls 1, 2, 3, 4)."""

from __future__ import annotations

import random

import pytest

from agentexp.errors import ConfigError
from agentexp.packing import to_samples
from agentexp.policies.chat import Chat, Conversation
from agentexp.policies.templates import prints_only
from agentexp.types import Action, Completion, Message, Outcome, Step, StopReason, Task, Trajectory, Turn
from tests.toys import CHATML, FORGETTING, TRIMMING, bytes_tokenizer, words

TEMPLATES = {"chatml": CHATML, "trimming": TRIMMING, "forgetting": FORGETTING}


def user(text: str) -> Message:
    return Message(role="user", content=text)


def sampled(chat: Chat, text: str, *, end: bool = True) -> Completion:
    ids = chat.encode_text(text) + ((chat.eos_ids[0],) if end else ())
    return Completion(
        ids=ids, logprobs=(-0.5,) * len(ids), text=text, finish="stop" if end else "length", policy_version=0
    )


def whole(chat: Chat, *messages: Message) -> list[int]:
    """The reference: the whole conversation rendered and encoded at once."""
    said = [{"role": m.role, "content": m.content} for m in messages]
    text = chat.tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
    return list(chat.tokenizer(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("template", [*TEMPLATES, "words"])
@pytest.mark.parametrize("system", [False, True])
def test_deltas_add_up_to_the_whole_rendering(template: str, system: bool) -> None:
    chat = Chat(tokenizer=words() if template == "words" else bytes_tokenizer(TEMPLATES[template]))
    conversation = chat.open()
    said = (
        [Message(role="system", content="open the door 1"), user("find the key")] if system else [user("find the key")]
    )
    ids = list(conversation.extend(said))
    for turn in range(4):
        answer = sampled(chat, "open door 2")
        conversation.adopt(answer)
        said += [Message(role="assistant", content="open door 2"), user(f"nothing happens door {turn % 3 + 1}")]
        delta = conversation.extend(said[-1:])
        ids += [*answer.ids, *delta]
        assert conversation.ids == ids == whole(chat, *said)
    assert (conversation.segment, conversation.breaks) == (0, 0)


@pytest.mark.parametrize("template", ["chatml", "trimming", "forgetting"])
def test_white_space_around_contents(template: str) -> None:
    """Templates that trim change nothing of what was sampled, and start no segment."""
    chat = Chat(tokenizer=bytes_tokenizer(TEMPLATES[template]))
    conversation = chat.open()
    conversation.extend([user("find the key ")])
    answer = sampled(chat, " open door 2 \n")
    conversation.adopt(answer)
    before = list(conversation.ids)
    delta = conversation.extend([user(" \n nothing\n")])
    assert conversation.ids == before + list(delta)
    assert conversation.breaks == 0
    assert before[-len(answer.ids) :] == list(answer.ids)


def test_the_append_only_frame_is_proved_not_guessed() -> None:
    assert Chat(tokenizer=words()).frame is not None
    assert Chat(tokenizer=bytes_tokenizer(CHATML)).frame is not None
    trimming = Chat(tokenizer=bytes_tokenizer(TRIMMING)).frame
    assert trimming is not None
    assert trimming.trims
    assert Chat(tokenizer=bytes_tokenizer(FORGETTING)).frame is None
    sly = CHATML.replace(
        "{{ '<|im_start|>'", "{% if message['content'].startswith('door') %}!{% endif %}{{ '<|im_start|>'"
    )
    assert not prints_only(sly)
    late = CHATML.replace("{{ '<|im_start|>' +", "{% if loop.index > 3 %}!{% endif %}{{ '<|im_start|>' +")
    assert prints_only(late)  # looks into no message, yet its words depend on the place
    assert Chat(tokenizer=bytes_tokenizer(late)).frame is None


@pytest.mark.parametrize("template", list(TEMPLATES))
def test_the_frame_and_full_rendering_agree(template: str) -> None:
    """The fast path against the slow one on random talk."""
    chat, slow = (
        Chat(tokenizer=bytes_tokenizer(TEMPLATES[template])),
        Chat(tokenizer=bytes_tokenizer(TEMPLATES[template])),
    )
    slow.frame = None
    rng = random.Random(0)
    one, two = chat.open(), slow.open()
    assert one.extend([user("start")]) == two.extend([user("start")])
    for _ in range(20):
        answer = sampled(chat, rng.choice(["look", " look", "", "<think>a</think>look", "x\n"]), end=rng.random() < 0.7)
        messages = [user(rng.choice(["a", " b ", "", "<think>", "\n"])) for _ in range(rng.choice([1, 1, 1, 2]))]
        one.adopt(answer)
        two.adopt(answer)
        assert one.extend(messages) == two.extend(messages)
        assert (one.ids, one.segment) == (two.ids, two.segment)


def test_no_re_tokenisation_drift() -> None:
    """Pitfall 1: "open" was sampled letter by letter, but encodes to fewer ids."""
    chat = Chat(tokenizer=bytes_tokenizer(CHATML, merges=[("o", "p"), ("e", "n")]))
    letters = tuple(chat.tokenizer.convert_tokens_to_ids(list("open")))
    assert chat.encode_text("open") != letters  # negative control: re-encoding would shorten it
    answer = Completion(
        ids=(*letters, chat.eos_ids[0]), logprobs=(-0.1,) * 5, text="open", finish="stop", policy_version=0
    )
    conversation, turns = two_turns(chat, answer)
    assert conversation.breaks == 0
    (sample,) = to_samples(trajectory(turns), 1.0)
    assert len(sample.ids) == len(sample.mask) == len(sample.old_logps)
    assert [i for i, m in zip(sample.ids, sample.mask, strict=True) if m] == [*answer.ids, *turns[1].completion.ids]


def test_a_template_that_rewrites_history_starts_a_segment() -> None:
    """Pitfall 2: [user, assistant with think, user]."""
    chat = Chat(tokenizer=bytes_tokenizer(FORGETTING))
    conversation, turns = two_turns(chat, sampled(chat, "<think>hm</think>look"))
    assert conversation.breaks == conversation.segment == 1
    assert turns[1].segment == 1
    text = chat.tokenizer.decode(turns[1].prompt_ids)
    assert "second question" in text
    assert "hm" not in text
    assert "look" in text
    first, second = to_samples(trajectory(turns, segments=2), 1.0)
    assert "second question" in chat.tokenizer.decode(second.ids)
    assert sum(first.mask) == len(turns[0].completion.ids)
    assert sum(second.mask) == len(turns[1].completion.ids)  # the re-read first answer is not trained


def test_thoughts_that_the_template_keeps_break_nothing() -> None:
    """Negative control of pitfall 2."""
    chat = Chat(tokenizer=bytes_tokenizer(CHATML))
    conversation, turns = two_turns(chat, sampled(chat, "<think>hm</think>look"))
    assert (conversation.breaks, turns[1].segment) == (0, 0)
    assert "first question" not in chat.tokenizer.decode(turns[1].prompt_ids)


def test_canned_assistant_turns_are_read_not_trained() -> None:
    """Pitfall 3: an example in the prompt, then one generated turn."""
    chat = Chat(tokenizer=bytes_tokenizer(CHATML))
    conversation = chat.open()
    prompt = conversation.extend([user("example"), Message(role="assistant", content="look"), user("find the key")])
    answer = sampled(chat, "open door 1")
    conversation.adopt(answer)
    (sample,) = to_samples(trajectory([turn(prompt, answer, 0)]), 1.0)
    assert sum(sample.mask) == len(answer.ids)
    assert sample.mask[: len(prompt)] == (False,) * len(prompt)


def test_a_cut_turn_is_closed_by_reading_not_by_sampling() -> None:
    """Pitfall 4: an end of turn that we append was not sampled."""
    chat = Chat(tokenizer=words())
    conversation = chat.open()
    conversation.extend([user("find the key")])
    cut = sampled(chat, "open door 1", end=False)
    conversation.adopt(cut)
    delta = conversation.extend([user("nothing")])
    assert delta[0] == chat.eos_ids[0]
    conversation.adopt(sampled(chat, "open door 1"))
    assert conversation.extend([user("nothing")]) == delta[1:]


def test_order_of_calls_is_checked() -> None:
    conversation = Chat(tokenizer=words()).open()
    with pytest.raises(RuntimeError, match="adopt was called without"):
        conversation.adopt(Completion(ids=(5,), logprobs=(-1.0,), text="x", finish="stop", policy_version=0))
    conversation.extend([user("find")])
    with pytest.raises(RuntimeError, match="extend was called twice"):
        conversation.extend([user("find")])


def test_truncation_left_in_the_tokenizer_does_not_cut_prompts() -> None:
    tokenizer = bytes_tokenizer(CHATML)
    tokenizer("some text", truncation=True, max_length=2, padding="max_length")
    assert len(Chat(tokenizer=tokenizer).encode_text("a longer text")) == len("a longer text")


def test_turn_end_of_the_template_comes_before_that_of_the_tokenizer() -> None:
    tokenizer = bytes_tokenizer(CHATML)
    tokenizer.eos_token = "<|end|>"
    tokenizer.add_special_tokens({"extra_special_tokens": ["<|im_end|>", "<|im_start|>"]})
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|end|>"])
    assert Chat(tokenizer=tokenizer).eos_ids == tuple(ends)


def test_a_tokenizer_without_template_is_refused() -> None:
    tokenizer = words()
    tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="has no chat template"):
        Chat(tokenizer=tokenizer)


def two_turns(chat: Chat, answer: Completion) -> tuple[Conversation, list[Turn]]:
    conversation, turns = chat.open(), []
    for question, completion in (("first question", answer), ("second question", sampled(chat, "look"))):
        prompt = conversation.extend([user(question)])
        conversation.adopt(completion)
        turns.append(turn(prompt, completion, conversation.segment))
    return conversation, turns


def turn(prompt: tuple[int, ...], completion: Completion, segment: int) -> Turn:
    action = Action(text=completion.text, command=completion.text)
    return Turn(prompt_ids=prompt, completion=completion, action=action, step=Step(observation="."), segment=segment)


def trajectory(turns: list[Turn], segments: int = 1) -> Trajectory:
    return Trajectory(
        task=Task(id="t", env="e", split="train", instruction="i"), sample=0, seed=0, turns=tuple(turns),
        outcome=Outcome(reward=1.0, success=True), stop=StopReason.DONE, segments=segments,
    )  # fmt: skip
