"""A word-level tokenizer for a small domain, as an ordinary fast Hugging Face tokenizer.

One entity ("drawer 3") is one token; words that carry nothing are dropped when reading. The chat
template is append-only, so a conversation's ids only ever grow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

PAD, EOS, ACT, OBS, UNK = "<pad>", "<eos>", "<act>", "<obs>", "<unk>"

# Words that the model need not read: their loss changes no command and no meaning in the domain.
_FILLER = (
    "a|an|and|the|you|are|in|middle|room|looking|quickly|around|see|some|at|it|them|is|arrive|up|of|"
    "your|facing|next|this|that's|there's|there|welcome|textworld|alfred"
)

_MARK = re.compile(r"[^\w\s/'-]")

_TEMPLATE = (
    "{% for m in messages %}"
    "{% if m['role'] == 'assistant' %}" + ACT + "{{ m['content'] }}" + EOS + "{% else %}" + OBS + "{{ m['content'] }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}" + ACT + "{% endif %}"
)


def word_tokenizer(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose vocabulary is the five special tokens and `words`, in this order.

    A word may be an entity of the form "name number". Anything unknown reads as <unk>. Decoding
    joins words with one space, so a decoded command is the command. A word with brackets, quotes or
    the like is a piece of punctuation, such as `","arguments":{"`: read as a whole where it stands,
    and joined without spaces.
    """
    marks = sorted((w for w in words if _MARK.search(w)), key=len, reverse=True)  # the longest that fits is read
    vocabulary: dict[str, int] = {}
    for word in [PAD, EOS, ACT, OBS, UNK, *words]:
        if word in vocabulary:
            raise ValueError(f"the word {word!r} stands twice in the vocabulary; each word needs one id")
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNK))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"\bloc \d+"), " "),
            normalizers.Replace(Regex(rf"(?<![a-z/'-])(?:{_FILLER})(?![a-z/'-]| \d)"), " "),
        ]
    )
    # Punctuation, an entity, else a word, else a number; whatever lies between is thrown away.
    pieces = [*map(re.escape, marks), r"[a-z]+ \d+", r"[a-z][a-z/'-]*", r"\d+"]
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("|".join(pieces)), "removed", invert=True)
    if marks:
        tight = "|".join(map(re.escape, marks))
        tokenizer.decoder = decoders.Sequence(
            [
                decoders.WordPiece(prefix="\x00", cleanup=False),  # a space before every word but the first
                decoders.Fuse(),
                decoders.Replace(Regex(f" (?={tight})"), ""),
                decoders.Replace(Regex(f"(?<={tight}) "), ""),
            ]
        )
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        extra_special_tokens=[ACT, OBS],
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = _TEMPLATE
    return fast
