"""The process reward model: a language model with a scalar head, on the policy's own token path.

Q(s, a) is read from the hidden state at the last id of the action, so one pass over an episode
scores all its steps, and no score depends on what follows.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from agentexp.errors import DataError
from agentexp.learning.model import Lora, Model
from agentexp.learning.trees import TreeBatch, lay, tree_size, tree_states
from agentexp.packing import buckets
from agentexp.seeding import seed_for
from agentexp.types import Tree

HEAD = "reward_head.safetensors"
FOLDER = "reward_model"  # in a run folder


@dataclass(frozen=True, kw_only=True)
class RewardModel:
    """A decoder and a scalar head [1, H]. `start`: the weights that it began with."""

    network: PreTrainedModel | PeftModel
    head: nn.Linear
    tokenizer: Any
    name: str
    start: dict[str, Tensor] = field(repr=False, default_factory=dict)

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.causal_lm.dtype

    @property
    def causal_lm(self) -> PreTrainedModel:
        """The transformers model inside; its vocabulary projection is not used."""
        inner = self.network.get_base_model() if isinstance(self.network, PeftModel) else self.network
        assert isinstance(inner, PreTrainedModel)
        return inner

    @property
    def decoder(self) -> nn.Module:
        """Token ids to hidden states [B, T, H]."""
        decoder: nn.Module = self.causal_lm.get_decoder()  # type: ignore[no-untyped-call]
        return decoder

    def trainable(self) -> dict[str, nn.Parameter]:
        """Name to parameter, for those that learn: of the decoder, and the head."""
        unused = set()
        projection = self.causal_lm.get_output_embeddings()  # type: ignore[no-untyped-call]
        embedding = self.causal_lm.get_input_embeddings()
        if projection is not None and projection.weight is not embedding.weight:
            unused = {id(p) for p in projection.parameters()}
        found: dict[str, nn.Parameter] = {
            n: p for n, p in self.network.named_parameters() if p.requires_grad and id(p) not in unused
        }
        found.update((f"reward_head.{n}", p) for n, p in self.head.named_parameters())
        return found

    def weights(self) -> dict[str, Tensor]:
        """A snapshot of what learns."""
        return {name: p.detach().clone() for name, p in self.trainable().items()}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Put a snapshot back. Raises DataError when names or shapes differ."""
        mine = self.trainable()
        odd = sorted(mine.keys() ^ weights.keys()) or [n for n, p in mine.items() if p.shape != weights[n].shape]
        if odd:
            raise DataError(
                f"weights do not fit reward model {self.name}: {odd[:3]} differ; use the model they came from"
            )
        with torch.no_grad():
            for name, parameter in mine.items():
                parameter.copy_(weights[name])

    def restart(self) -> None:
        """Back to the weights that it began with."""
        self.load_weights(self.start)

    def logits(self, batch: TreeBatch, rows: Tensor, columns: Tensor) -> Tensor:
        """Raw scores [N] at these tokens; AgentPRM's Q is their sigmoid. Differentiable."""
        states = tree_states(self.decoder, batch)
        found: Tensor = self.head(states[rows, columns].to(self.head.weight.dtype))[:, 0]
        return found.float()

    def save(self, folder: Path) -> None:
        """Write decoder (merged, if it has an adapter), head and tokenizer."""
        network: Any = (
            copy.deepcopy(self.network).merge_and_unload() if isinstance(self.network, PeftModel) else self.network
        )
        network.save_pretrained(str(folder))
        self.tokenizer.save_pretrained(folder)
        save_file({"weight": self.head.weight.detach().contiguous()}, folder / HEAD)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """Raw scores of one tree: after each decision of the trunk, and after each branch."""

    decisions: tuple[float, ...]
    branches: tuple[float, ...]


@torch.no_grad()
def score(reward_model: RewardModel, trees: Sequence[Tree], *, tokens_per_microbatch: int) -> list[Scores]:
    """Score every decision and branch; each history is read once."""
    reward_model.network.eval()
    found: list[Scores | None] = [None] * len(trees)
    for indices in buckets([tree_size(t) for t in trees], tokens_per_microbatch):
        chosen = [trees[i] for i in indices]
        batch = lay(chosen, dtype=reward_model.dtype, device=reward_model.device)
        spots = [(row, d.end - 1) for row, t in enumerate(chosen) for d in t.trunk.decisions]
        spots += [(row, end - 1) for row, _, end in batch.branches]
        if not spots:
            values: list[float] = []
        else:
            where = torch.tensor(spots, device=reward_model.device)
            values = reward_model.logits(batch, where[:, 0], where[:, 1]).tolist()
        at, behind = 0, sum(len(t.trunk.decisions) for t in chosen)
        for i, tree in zip(indices, chosen, strict=True):
            n, m = len(tree.trunk.decisions), len(tree.branches)
            found[i] = Scores(decisions=tuple(values[at : at + n]), branches=tuple(values[behind : behind + m]))
            at, behind = at + n, behind + m
    return [s for s in found if s is not None]


def reward_model(
    *, model: Model, weights: str | None, lora: Lora | None, head_std: float | None, seed: int
) -> RewardModel:
    """A reward model for the policy `model`.

    weights null: it starts as a copy of the policy as it is now (an adapter is merged into the copy).
    weights: a saved reward model or a run folder that holds one; it may be of another size, as long
    as the words are the same. lora: only an adapter and the head learn; null: everything.
    head_std: deviation of the head's first weights; null: 1 / sqrt(H + 1), the released code's.
    """
    if weights is None:
        network: Any = copy.deepcopy(model.network)
        if isinstance(network, PeftModel):
            network = network.merge_and_unload()
        name = f"reward model from {model.name}"
    else:
        folder = reward_model_folder(weights)
        network = AutoModelForCausalLM.from_pretrained(folder, dtype=model.causal_lm.dtype)
        network.to(model.device)
        theirs = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"].get("vocab")
        mine = json.loads(model.tokenizer.backend_tokenizer.to_str())["model"].get("vocab")
        if theirs != mine:
            raise DataError(
                f"the reward model in {folder} has other words than model {model.name}, so it cannot read its tokens; "
                "use one that was trained for the same tokenizer, or reward_model.weights=null"
            )
        name = f"reward model from {weights}"
    network.requires_grad_(requires_grad=True)
    size = network.config.get_text_config(decoder=True).hidden_size
    head = nn.Linear(size, 1, bias=False, device=model.device)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed_for(seed, "reward model", "head"))
        nn.init.normal_(head.weight, std=(size + 1) ** -0.5 if head_std is None else head_std)
        if lora is not None:
            settings = LoraConfig(
                r=lora.rank,
                lora_alpha=lora.alpha,
                lora_dropout=lora.dropout,
                target_modules=list(lora.target_modules),
                bias="none",
                task_type="CAUSAL_LM",
            )
            network = get_peft_model(network, settings)
    if weights is not None:
        with torch.no_grad():
            head.weight.copy_(load_file(folder / HEAD)["weight"])
    made = RewardModel(network=network, head=head, tokenizer=model.tokenizer, name=name)
    made.start.update(made.weights())
    return made


def reward_model_folder(weights: str) -> Path:
    """The folder that holds a saved reward model: itself, or a run folder with one in it."""
    root = Path(weights).expanduser()
    for folder in (root, root / FOLDER):
        if (folder / HEAD).is_file():
            return folder
    raise DataError(
        f"no reward model in {root}: neither it nor {root / FOLDER} holds {HEAD}; give the folder of a finished run of "
        "an algorithm that trains one (agent_prm, inverse_prm)"
    )
