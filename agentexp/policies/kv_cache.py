"""A key-value cache whose rows grow independently and in place: nothing is copied when a token is
added, no hole is left by padding, and what an episode has read is never read again.

Legend: R rows (one per live episode), L new tokens of a forward pass, T capacity, D head size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache

from agentexp.errors import ConfigError


class RowCache(Cache):
    """Keys and values [R, heads, T, D] per layer, and how many tokens each row holds.

    A forward pass writes its L tokens at each row's own position. Padding on the right of a row's
    new tokens is written too, beyond its length, where no query looks and the next tokens overwrite
    it. Full attention layers only.
    """

    def __init__(self, config: PreTrainedConfig, *, device: torch.device, dtype: torch.dtype, tokens: int) -> None:
        text = config.get_text_config(decoder=True)
        kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"} or (
            getattr(text, "sliding_window", None) and getattr(text, "use_sliding_window", True)
        ):
            raise ConfigError(
                f"the transformers policy keeps keys and values of full attention only; this model has {sorted(kinds)} "
                f"layers and sliding window {getattr(text, 'sliding_window', None)}; use another policy for it"
            )
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        self._shape = (heads, size)
        self.keys = [
            torch.zeros(0, heads, tokens, size, device=device, dtype=dtype) for _ in range(text.num_hidden_layers)
        ]
        self.values = [k.clone() for k in self.keys]
        self.lengths = torch.zeros(0, dtype=torch.long, device=device)
        self.layers = []  # transformers' own layer objects are not used
        self._at: Tensor | None = None
        self._upto = 0

    @property
    def rows(self) -> int:
        return len(self.lengths)

    @property
    def capacity(self) -> int:
        return self.keys[0].shape[2]

    def resize(self, keep: list[int], rows: int) -> None:
        """Keep these rows, in this order, then add empty ones up to `rows`."""
        index = torch.tensor(keep, dtype=torch.long, device=self.lengths.device)
        extra = rows - len(keep)
        self.keys = [pad(k[index], (0, 0, 0, 0, 0, 0, 0, extra)) for k in self.keys]
        self.values = [v[index] for v in self.values]
        self.values = [pad(v, (0, 0, 0, 0, 0, 0, 0, extra)) for v in self.values]
        self.lengths = pad(self.lengths[index], (0, extra))

    def begin(self, new_tokens: int) -> tuple[Tensor, Tensor]:
        """Make room for `new_tokens` more per row; returns their positions [R, L] and what is added to
        the attention scores [R, 1, L, T']: 0 for keys that a query may see, minus infinity elsewhere
        (attention with a boolean mask makes the same again in every layer)."""
        need = int(self.lengths.max()) + new_tokens
        self._make_room(need)
        self._upto = need
        self._at = self.lengths[:, None] + torch.arange(new_tokens, device=self.lengths.device)
        seen = torch.arange(need, device=self.lengths.device) <= self._at[:, :, None]
        hidden = torch.full(seen.shape, float("-inf"), dtype=self.keys[0].dtype, device=seen.device)
        return self._at, hidden.masked_fill_(seen, 0.0)[:, None]

    def begin_branches(
        self, points: Tensor, columns: Tensor, *, of: int, start: int, levels: int
    ) -> tuple[Tensor, Tensor]:
        """Make room for levels `start` to `start + levels` of branches; as `begin`, but a row's new
        tokens are its branches' next ones: level by level, within a level branch by branch.

        columns [R, P]: which of a row's `of` branches these are (one that nobody uses may stand for
        padding). points [R, P]: how many of its row's tokens each has read. A branch sees those and
        its own levels. Rows keep their lengths, so `begin` or other branches may overwrite these.
        """
        count = points.shape[1]
        need = int(self.lengths.max()) + (start + levels) * of
        self._make_room(need)
        self._upto = need
        device = self.lengths.device
        level = start + torch.arange(levels, device=device).repeat_interleave(count)  # [L]
        branch, point = columns.repeat(1, levels), points.repeat(1, levels)  # [R, L]
        self._at = self.lengths[:, None] + level * of + branch
        slot = torch.arange(need, device=device)
        behind = slot - self.lengths[:, None]  # [R, T']: which of the branches' slots it is, if not negative
        trunk = slot < point[:, :, None]  # [R, L, T']
        own = (behind >= 0)[:, None] & ((behind % of)[:, None] == branch[:, :, None])
        seen = trunk | (own & ((behind // of)[:, None] <= level[:, None]))
        hidden = torch.full(seen.shape, float("-inf"), dtype=self.keys[0].dtype, device=device)
        return point + level, hidden.masked_fill_(seen, 0.0)[:, None]

    def keep_branch(self, row: int, branch: int, *, of: int, tokens: int) -> None:
        """One of a row's `of` branches, its first `tokens` levels, becomes the row's continuation; it was
        read once and is not read again. Its point must have been the row's end."""
        start = int(self.lengths[row])
        slots = start + torch.arange(tokens, device=self.lengths.device) * of + branch
        for kept in (*self.keys, *self.values):
            kept[row, :, start : start + tokens] = kept[row][:, slots]
        self.lengths[row] += tokens

    def _make_room(self, need: int) -> None:
        if need > self.capacity:
            grow = max(need, self.capacity + self.capacity // 2) - self.capacity
            self.keys = [pad(k, (0, 0, 0, grow)) for k in self.keys]
            self.values = [pad(v, (0, 0, 0, grow)) for v in self.values]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Transformers' hook: store the new keys and values, return all up to the longest row."""
        assert self._at is not None, "begin() comes before the forward pass"
        keys, values = self.keys[layer_idx], self.values[layer_idx]
        index = self._at[:, None, :, None].expand_as(key_states)
        keys.scatter_(2, index, key_states)
        values.scatter_(2, index, value_states)
        return keys[:, :, : self._upto], values[:, :, : self._upto]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._upto
