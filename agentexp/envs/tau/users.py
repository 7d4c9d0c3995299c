"""The customer that the agent talks to, scripted: the same words to the same messages, no language model.

A scripted customer tells everything at once and agrees to everything, so results with it are not
comparable with published ones, whose customers are played by language models (`endpoint.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from agentexp.envs.tau.case import Case
from agentexp.errors import ConfigError

STOP = "###STOP###"  # both releases' words with which a customer ends the conversation
TRANSFERRED = "###TRANSFER###"
ENDS = (STOP, TRANSFERRED, "###OUT-OF-SCOPE###")
GREETING = "Hi! How can I help you today?"  # what the agent is taken to have said before the customer speaks
HANDED_OVER = "you are being transferred to a human agent"  # what the policy has the agent say

_CONFIRM = re.compile(
    r"yes/no|yes or no|do you confirm|please confirm(?! your)|shall i|should i|would you like me to|"
    r"do you want me to|proceed|go ahead"
)
_IDENTIFY = re.compile(r"\be-?mail|\bzip\b|\bname\b|identi|verify|authenticate|user id")
_FAREWELL = re.compile(r"anything else|else i can|goodbye|have a (?:great|good|nice|wonderful) day")


class User(Protocol):
    """The customer of one conversation."""

    @property
    def first(self) -> str:
        """What the customer says first."""
        ...

    def answer(self, message: str) -> str:
        """What the customer says to the agent's message; one of ENDS in it ends the conversation."""
        ...


class Users(Protocol):
    """Where customers come from."""

    def open(self, case: Case, seed: int) -> User: ...

    def version(self) -> Mapping[str, str]:
        """What a result must record."""
        ...


class ScriptedUsers:
    """Customers who state their request, prove who they are when asked, say yes to every confirmation, and
    leave when asked whether there is anything else.

    patience: how many other messages they answer, by telling their request again, before they leave.
    """

    def __init__(self, *, patience: int) -> None:
        if patience < 0:
            raise ConfigError(f"user.patience is {patience}; 0 or more is needed")
        self.patience = patience

    def open(self, case: Case, seed: int) -> ScriptedUser:
        """A customer; there is no chance in it, so `seed` changes nothing."""
        return ScriptedUser(case, patience=self.patience)

    def version(self) -> Mapping[str, str]:
        return {"user": "scripted 1", "label": "a scripted customer: not comparable with published scores"}


class ScriptedUser:
    """One customer; see ScriptedUsers."""

    def __init__(self, case: Case, *, patience: int) -> None:
        self._customer, self._left = case.customer, patience
        self._details = first_person("\n".join(text for text in (case.request, case.manner) if text))
        self.first = f"Hi. {first_person(case.request)}"

    def answer(self, message: str) -> str:
        """The first of these that fits the message: a confirmation, proof of identity, a farewell, the request."""
        text = message.lower()
        if HANDED_OVER in text:
            return TRANSFERRED
        if _CONFIRM.search(text):
            return "Yes, please go ahead."
        if _IDENTIFY.search(text):
            return self._identity()
        if _FAREWELL.search(text):
            return f"No, that is all. Thank you. {STOP}"
        self._left -= 1
        if self._left < 0:
            return f"I have told you all that I know. Goodbye. {STOP}"
        return self._details

    def _identity(self) -> str:
        who = self._customer
        email = f"My email is {who.email}." if who.email else "I do not remember my email."
        return f"My name is {who.first_name} {who.last_name} and my zip code is {who.zip}. {email}"


_PERSONS = (
    (r"\byou are\b", "I am"),
    (r"\byou're\b", "I'm"),
    (r"\byou were\b", "I was"),
    (r"\byourself\b", "myself"),
    (r"\byours\b", "mine"),
    (r"\byour\b", "my"),
    (
        r"\b(to|for|with|from|tell|tells|give|gives|help|helps|ask|asks|of|let|lets|about|at|send|charge) you\b",
        r"\1 me",
    ),
    (r"\byou\b", "I"),
)


def first_person(told: str) -> str:
    """Instructions to a customer ("You want …") as the customer says them. By rule, so not always good
    English; the facts stay as they are.

    >>> first_person("You are in a hurry. Your mug broke; ask the agent to send you a new one.")
    'I am in a hurry. My mug broke; ask the agent to send me a new one.'
    """
    for pattern, word in _PERSONS:
        told = re.sub(pattern, partial(_cased, word), told, flags=re.IGNORECASE)
    return told


def _cased(word: str, found: re.Match[str]) -> str:
    new = found.expand(word)
    return new[0].upper() + new[1:] if found.group()[0].isupper() else new
