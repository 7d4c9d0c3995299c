"""A customer behind an endpoint: what is sent, what is tried again, and how failures end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentexp.envs.tau.endpoint import EndpointUsers
from agentexp.errors import ConfigError, EnvironmentFailure
from agentexp.types import Action, StopReason
from tests.toy_tau import ToyTau
from tests.toys import rollouts

GOOD = (200, json.dumps({"choices": [{"message": {"content": " I want my mug. "}}]}))
BYE = (200, json.dumps({"choices": [{"message": {"content": "Thanks. ###STOP###"}}]}))


class Endpoint:
    """A server that answers with `answers` in turn, the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = [GOOD]
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append((self.path, dict(self.headers), body))
                status, text = endpoint.answers.pop(0) if len(endpoint.answers) > 1 else endpoint.answers[0]
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def users(url: str, **changes: Any) -> EndpointUsers:
    options: dict[str, Any] = {
        "url": url, "model": "m", "api_key_env": None, "temperature": 0.0, "max_tokens": 64, "timeout_s": 5.0,
        "retries": 2, "pause_s": 0.0,
    }  # fmt: skip
    return EndpointUsers(**{**options, **changes})


def test_the_model_hears_both_sides_and_its_own_instructions(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAU_TEST_KEY", "secret")
    env = ToyTau(release="tau_bench", user=users(endpoint.url, api_key_env="TAU_TEST_KEY"))
    session = env.start(env.tasks("train")[0], 3)
    assert session.first.observation == "I want my mug."
    endpoint.answers = [BYE]
    step = session.step(Action(text="", command="Who are you?"))
    assert step.done
    assert session.outcome().metrics["ended"] == 1.0
    (path, headers, opening), (_, _, later) = endpoint.asked
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert [m["role"] for m in later["messages"]] == ["system", "user", "assistant", "user"]
    assert later["messages"][:2] == opening["messages"]
    assert [m["content"] for m in later["messages"][2:]] == ["I want my mug.", "Who are you?"]
    assert "Cancel order #W1" in opening["messages"][0]["content"]
    assert opening["seed"] != later["seed"]
    session = env.start(env.tasks("train")[0], 3)
    assert endpoint.asked[-1][2] == opening  # the same seed asks the same


@pytest.mark.parametrize(
    "bad", [(500, "down"), (429, "slow down"), (200, "no JSON"), (200, "{}"), (200, '{"choices": []}')]
)
def test_what_may_pass_is_tried_again(endpoint: Endpoint, bad: tuple[int, str]) -> None:
    endpoint.answers = [bad, bad, GOOD]
    assert users(endpoint.url).complete([], 0) == "I want my mug."
    endpoint.answers = [bad]
    with pytest.raises(EnvironmentFailure, match="3 of 3 tries made"):
        users(endpoint.url).complete([], 0)
    assert len(endpoint.asked) == 6


def test_what_cannot_pass_is_not_tried_again(endpoint: Endpoint) -> None:
    endpoint.answers = [(401, "who are you?")]
    with pytest.raises(EnvironmentFailure, match=r"1 of 3 tries made; the last: status 401: who are you\?"):
        users(endpoint.url).complete([], 0)
    assert len(endpoint.asked) == 1


def test_a_failure_is_an_environment_error_and_never_a_reward(endpoint: Endpoint) -> None:
    endpoint.answers = [GOOD, (500, "down")]
    env = ToyTau(release="tau_bench", user=users(endpoint.url, retries=0))
    # Every episode opens (GOOD once, then failures): none may end with a score.
    played = rollouts(env, max_turns=3, retries=0, max_dead_groups=9, max_context_tokens=2000).collect(
        env.tasks("train")[:2], rollouts_per_task=1, temperature=1.0, seed=0
    )
    members = [t for g in played.groups for t in g.trajectories]
    assert all(t.stop is StopReason.ENV_ERROR and t.outcome is None for t in members)
    assert played.stats["env_errors"] == 2


def test_nobody_listens() -> None:
    with pytest.raises(EnvironmentFailure, match="URLError"):
        users("http://127.0.0.1:9/v1", retries=0).complete([], 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "file:///etc/passwd"}, "http"),
        ({"timeout_s": 0.0}, "timeout_s is 0.0"),
        ({"retries": -1}, "retries -1"),
        ({"api_key_env": "NO_SUCH_KEY_IS_SET"}, "NO_SUCH_KEY_IS_SET"),
    ],
)
def test_what_cannot_work_is_refused_at_once(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        users(**{"url": "http://localhost", **changes})
