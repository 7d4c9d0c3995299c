"""The customer played by a language model behind any OpenAI-compatible endpoint, as in the releases.

Whatever goes wrong with the endpoint is an EnvironmentFailure: counted, never a reward of 0.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from agentexp.envs.tau.case import Case
from agentexp.envs.tau.users import ENDS, GREETING
from agentexp.errors import ConfigError, EnvironmentFailure
from agentexp.seeding import seed_for

_AGAIN = frozenset({408, 409, 425, 429})  # and 5xx: worth another try
_ROLE = f"""\
You play a customer who contacts a shop's customer service. Below is who you are and what you want; stay with it.
Write one short message at a time, in your own words, as the customer and nobody else. Do not tell everything at once:
answer what you are asked. What is not written below you do not know; never make it up.
When you have got what you want, or nothing more can be done, write {ENDS[0]}.
When you are told that you are being transferred to someone else, write {ENDS[1]}.
When the text below does not say how to go on, write {ENDS[2]}.
"""


class EndpointUsers:
    """Customers played by `model` at `url` (which ends before `/chat/completions`).

    api_key_env: name of the environment variable that holds the key (None: no key). temperature,
    max_tokens: of each message. timeout_s: of one request. retries: more tries after a failure that may
    pass; pause_s: before the first of them, twice as long before each next. A seed goes with every
    request, but whether equal seeds give equal words is up to the endpoint.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key_env: str | None,
        temperature: float,
        max_tokens: int,
        timeout_s: float,
        retries: int,
        pause_s: float,
    ) -> None:
        if urlsplit(url).scheme not in {"http", "https"}:
            raise ConfigError(f"user.url is {url!r}; an address that begins with http:// or https:// is needed")
        if timeout_s <= 0 or retries < 0 or pause_s < 0 or max_tokens < 1:
            raise ConfigError(
                f"user.timeout_s is {timeout_s}, retries {retries}, pause_s {pause_s}, max_tokens {max_tokens}; needed "
                "are timeout_s above 0, retries and pause_s of 0 or more, max_tokens of 1 or more"
            )
        if api_key_env is not None and not os.environ.get(api_key_env):
            raise ConfigError(
                f"user.api_key_env names {api_key_env}, which is not set; export it, or set null for no key"
            )
        self.url, self.model, self.api_key_env = url.rstrip("/") + "/chat/completions", model, api_key_env
        self.temperature, self.max_tokens = temperature, max_tokens
        self.timeout_s, self.retries, self.pause_s = timeout_s, retries, pause_s

    def open(self, case: Case, seed: int) -> EndpointUser:
        """A customer; their first words are asked for at once."""
        return EndpointUser(self, case, seed)

    def version(self) -> Mapping[str, str]:
        return {"user": f"{self.model}, temperature {self.temperature:g}"}

    def complete(self, messages: list[dict[str, str]], seed: int) -> str:
        """The model's next message. Tries again where that may help, then says what went wrong."""
        body = {
            "model": self.model,
            "messages": messages,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": seed % 2**31,
        }
        headers = {"Content-Type": "application/json"}
        if self.api_key_env is not None:
            headers["Authorization"] = f"Bearer {os.environ[self.api_key_env]}"
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)  # http or https, see above
        wrong = ""
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(self.pause_s * 2 ** (attempt - 1))
            try:
                with urllib.request.urlopen(request, timeout=self.timeout_s) as response:
                    return _content(json.load(response))
            except urllib.error.HTTPError as error:
                wrong = f"status {error.code}: {error.read(300).decode(errors='replace').strip()}"
                if error.code not in _AGAIN and error.code < 500:
                    break
            except (OSError, HTTPException, ValueError) as error:  # no connection, no answer in time, no JSON
                wrong = f"{type(error).__name__}: {error}"
        raise EnvironmentFailure(
            f"the customer's model {self.model} at {self.url} failed, {attempt + 1} of {self.retries + 1} tries made; "
            f"the last: {wrong}"
        )


class EndpointUser:
    """One customer, with all that was said; see EndpointUsers."""

    def __init__(self, users: EndpointUsers, case: Case, seed: int) -> None:
        self._users, self._seed = users, seed
        told = "\n".join(text for text in (case.request, case.manner) if text)
        # The model writes as the "assistant", so the agent is its "user".
        self._said = [
            {"role": "system", "content": f"{_ROLE}\n{told}"},
            {"role": "user", "content": GREETING},
        ]
        self.first = self._next()

    def answer(self, message: str) -> str:
        """The model's answer to the agent's message."""
        self._said.append({"role": "user", "content": message})
        return self._next()

    def _next(self) -> str:
        words = self._users.complete(self._said, seed_for(self._seed, "customer", len(self._said)))
        self._said.append({"role": "assistant", "content": words})
        return words


def _content(answer: Any) -> str:
    try:
        content = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"an answer without choices[0].message.content: {str(answer)[:200]}") from error
    if not isinstance(content, str) or not content.strip():
        raise ValueError(f"an empty message: {str(answer)[:200]}")
    return content.strip()
