"""What is played when best of n is measured."""

from __future__ import annotations

from agentexp.errors import ConfigError
from agentexp.learning.reward_model import RewardModel
from agentexp.policies.base import Policy
from agentexp.policies.best_of_n import BestOfN
from agentexp.policies.hf import HfPolicy


def choosing(policy: Policy, reward_model: RewardModel) -> BestOfN:
    """The policy, with the reward model choosing among as many candidates as each request asks for."""
    if not isinstance(policy, HfPolicy):
        raise ConfigError(
            f"evaluation.best_of asks for best of n, but {type(policy).__name__} gives no candidates to choose from; "
            "use policy=hf, or evaluation.best_of=[]"
        )
    return BestOfN(
        policy=policy, reward_model=reward_model, n=1, initial_cache_tokens=policy.reader.initial_cache_tokens
    )
