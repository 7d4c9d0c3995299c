"""The one copy of the model: network and tokenizer together, from scratch or pretrained.

Sampler, learner and reference all look at this object; nothing in agentexp copies its weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from agentexp.errors import ConfigError, DataError
from agentexp.learning.words import word_tokenizer
from agentexp.seeding import seed_for


@dataclass(frozen=True, kw_only=True)
class Model:
    """A causal language model and its tokenizer.

    network: a transformers model, or a peft wrapper around one. name: for results.
    """

    network: PreTrainedModel | PeftModel
    tokenizer: Any
    name: str

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def causal_lm(self) -> PreTrainedModel:
        """The transformers model inside (adapter layers included, wrapper left out)."""
        inner = self.network.get_base_model() if isinstance(self.network, PeftModel) else self.network
        assert isinstance(inner, PreTrainedModel)
        return inner

    @property
    def decoder(self) -> nn.Module:
        """Token ids to hidden states [B, T, H], without the vocabulary projection."""
        decoder: nn.Module = self.causal_lm.get_decoder()  # type: ignore[no-untyped-call]
        return decoder

    @property
    def head(self) -> nn.Linear:
        """The vocabulary projection."""
        head = self.causal_lm.get_output_embeddings()  # type: ignore[no-untyped-call]
        assert isinstance(head, nn.Linear)
        return head

    def trainable(self) -> dict[str, nn.Parameter]:
        """Name to parameter, for those that learn; tied weights once."""
        return {name: p for name, p in self.network.named_parameters() if p.requires_grad}

    def weights(self) -> dict[str, Tensor]:
        """A snapshot of what learns: the adapter, or everything."""
        return {name: p.detach().clone() for name, p in self.trainable().items()}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Put a snapshot back. Raises DataError when names or shapes differ."""
        mine = self.trainable()
        if mine.keys() != weights.keys():
            odd = sorted(mine.keys() ^ weights.keys())[:3]
            raise DataError(
                f"weights do not fit model {self.name}: {odd} stand on one side only; use the model they came from"
            )
        with torch.no_grad():
            for name, parameter in mine.items():
                if parameter.shape != weights[name].shape:
                    raise DataError(
                        f"weights do not fit model {self.name}: {name} is {tuple(weights[name].shape)}, "
                        f"the model has {tuple(parameter.shape)}; use the model they came from"
                    )
                parameter.copy_(weights[name])

    @property
    def has_adapter(self) -> bool:
        return isinstance(self.network, PeftModel)

    @contextmanager
    def with_weights(self, snapshot: dict[str, Tensor]) -> Iterator[None]:
        """Inside, what learns has the weights of `snapshot` (the adapter's, or all)."""
        current = self.weights()
        self.load_weights(snapshot)
        try:
            yield
        finally:
            self.load_weights(current)

    @contextmanager
    def as_reference(self, snapshot: dict[str, Tensor] | None) -> Iterator[None]:
        """Inside, the network is the reference: its adapter is switched off and nothing is copied.
        A model without an adapter takes the weights of `snapshot` for the while."""
        if isinstance(self.network, PeftModel):
            with self.network.disable_adapter():
                yield
            return
        if snapshot is None:
            raise ConfigError(
                f"model {self.name} has no adapter to switch off and no snapshot was kept, so there is no reference; "
                "set kl_coefficient to 0 or give the model a LoRA adapter"
            )
        with self.with_weights(snapshot):
            yield

    def save(self, folder: Path) -> None:
        """Write weights (adapter only, if there is one) and tokenizer as ordinary folders."""
        self.network.save_pretrained(str(folder))
        self.tokenizer.save_pretrained(folder)


SHIPPED = Path(__file__).parents[1] / "pretrained"  # small checkpoints that `make pi0` makes again


def model_folder(weights: str) -> Path:
    """The folder that holds the weights: a shipped checkpoint by its name, a saved model, or a run
    folder with `model/` in it."""
    root = Path(weights).expanduser()
    for folder in (SHIPPED / weights, root, root / "model"):
        if (folder / "config.json").is_file() or (folder / "adapter_config.json").is_file():
            return folder
    raise DataError(
        f"no model in {root}: neither it nor {root / 'model'} holds a config.json or adapter_config.json; "
        f"give a saved model folder, a finished run folder, or one of the shipped: {', '.join(shipped())}"
    )


def shipped() -> list[str]:
    """Names of the checkpoints that come with agentexp."""
    return sorted(p.name for p in SHIPPED.glob("*") if p.is_dir())


def tiny(
    *,
    words: Sequence[str],
    weights: str | None,
    hidden_size: int,
    layers: int,
    head_size: int,
    mlp_ratio: int,
    max_context_tokens: int,
    initializer_range: float,
    threads: int | None,
    seed: int,
) -> Model:
    """A small Llama-architecture decoder with a word-level tokenizer: from scratch when `weights`
    is null, else as saved, tokenizer included (an id means the same word as when it was trained)."""
    if threads is not None:
        torch.set_num_threads(threads)
    if weights is not None:
        folder = model_folder(weights)
        saved: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        asked = {
            "hidden_size": (hidden_size, saved.config.hidden_size),
            "layers": (layers, saved.config.num_hidden_layers),
            "head_size": (head_size, saved.config.head_dim),
            "mlp_ratio": (mlp_ratio, saved.config.intermediate_size // saved.config.hidden_size),
            "max_context_tokens": (max_context_tokens, saved.config.max_position_embeddings),
        }
        for key, (wanted, has) in asked.items():
            if wanted != has:
                raise ConfigError(
                    f"model.{key} is {wanted}, but the weights {weights!r} have {has}; set it to {has}, "
                    "or model.weights=null for a model of that size from scratch"
                )
        return Model(network=saved, tokenizer=AutoTokenizer.from_pretrained(folder), name=f"tiny from {weights}")
    if hidden_size % head_size:
        raise ConfigError(f"hidden_size {hidden_size} is no multiple of head_size {head_size}; choose one that is")
    tokenizer = word_tokenizer(words)
    heads = hidden_size // head_size
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=hidden_size * mlp_ratio,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=max_context_tokens,
        initializer_range=initializer_range,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed_for(seed, "model", "init"))
        network = LlamaForCausalLM(config)
    return Model(
        network=network, tokenizer=tokenizer, name=f"tiny-{sum(p.numel() for p in network.parameters()) / 1e6:.2f}M"
    )


@dataclass(frozen=True, kw_only=True)
class Lora:
    """LoRA settings, by peft."""

    rank: int
    alpha: int
    dropout: float
    target_modules: list[str]


def pretrained(
    *,
    path: str,
    weights: str | None,
    lora: Lora | None,
    dtype: Literal["float32", "bfloat16", "float16"],
    device: Literal["cpu", "cuda", "auto"],
    gradient_checkpointing: bool,
    threads: int | None,
    seed: int,
) -> Model:
    """A pretrained model from a folder or a hub name, with a fresh LoRA adapter, a saved one
    (`weights`), or none (then everything learns)."""
    if threads is not None:
        torch.set_num_threads(threads)
    place = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        network: Any = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))
        network.to(place)
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"model {path!r} could not be loaded: {error}; give a folder that save_pretrained wrote, or a hub name "
            "that this machine can reach"
        ) from error
    if gradient_checkpointing:
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    adapter = model_folder(weights) if weights is not None else None
    if adapter is not None and (adapter / "adapter_config.json").is_file():
        network = PeftModel.from_pretrained(network, adapter, is_trainable=True)
    elif adapter is not None:
        raise DataError(
            f"{adapter} holds a whole model, not an adapter; give it as model.path and set model.weights to null"
        )
    elif lora is not None:
        with torch.random.fork_rng():
            torch.manual_seed(seed_for(seed, "model", "lora"))
            settings = LoraConfig(
                r=lora.rank,
                lora_alpha=lora.alpha,
                lora_dropout=lora.dropout,
                target_modules=list(lora.target_modules),
                bias="none",
                task_type="CAUSAL_LM",
            )
            network = get_peft_model(network, settings)
    return Model(network=network, tokenizer=tokenizer, name=Path(path).name)
