"""The releases of the Berkeley function calling leaderboard: the package that holds one, its data
files, and the manifest that fixes their hashes and our split. Knows no episode.

The packages are found, never imported as a whole: their own dependencies are many, and none of
them is needed.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from agentexp.errors import ConfigError, DataError

MULTI_TURN = ("base", "miss_func", "miss_param", "long_context")
SINGLE_TURN = (
    *("simple", "multiple", "parallel", "parallel_multiple", "irrelevance", "java", "javascript"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance"),
)
UNANSWERED = ("irrelevance", "live_irrelevance", "live_relevance")  # no right call is written down for these
APIS = {  # class -> its module, which is also the name of its file of tool schemas
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """Where one release keeps its things. `renamed`: categories whose file has another name."""

    package: str
    install: str
    prefix: str
    backends: str  # folder of the APIs' modules
    wording: str  # module that holds the message with which held-out functions arrive
    converters: str  # folder of the modules that read Java and JavaScript values
    renamed: Mapping[str, str]
    apis: Mapping[str, str]
    categories: tuple[str, ...]
    manifest: Path


RELEASES = {
    "v3": Release(
        package="bfcl",
        install="pip install --no-deps nvidia-bfcl==26.3 mpmath",
        prefix="BFCL_v3_",
        backends="eval_checker/multi_turn_eval/func_source_code",
        wording="model_handler/constant",
        converters="eval_checker/ast_eval/type_convertor",
        renamed={},
        apis=APIS,
        categories=SINGLE_TURN,
        manifest=Path(__file__).with_name("manifest_v3.json"),
    ),
    "v4": Release(
        package="bfcl_eval",
        install="pip install --no-deps bfcl-eval==2026.3.23 mpmath",
        prefix="BFCL_v4_",
        backends="eval_checker/multi_turn_eval/func_source_code",
        wording="constants/default_prompts",
        converters="eval_checker/ast_eval/type_convertor",
        renamed={"simple": "simple_python", "java": "simple_java", "javascript": "simple_javascript"},
        apis=APIS,
        categories=SINGLE_TURN,
        manifest=Path(__file__).with_name("manifest_v4.json"),
    ),
}


class Suite:
    """An installed release. Every file is compared with the manifest's hash when it is first read.
    Raises ConfigError where the package is missing, DataError where its contents are others."""

    def __init__(self, release: Release) -> None:
        self.release = release
        spec = importlib.util.find_spec(release.package)
        if spec is None or not spec.submodule_search_locations:
            raise ConfigError(
                f"environment: this release of BFCL is in the package {release.package!r}, which is not installed: "
                f"{release.install}"
            )
        self.folder = Path(next(iter(spec.submodule_search_locations)))
        self._checked: set[str] = set()

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the release must hold, and our split of its scenarios."""
        manifest: dict[str, Any] = json.loads(self.release.manifest.read_text(encoding="utf-8"))
        return manifest

    @property
    def digest(self) -> str:
        """One hash for all the files and the split."""
        return hashlib.sha256(json.dumps(self.manifest, sort_keys=True).encode()).hexdigest()[:16]

    def questions(self, category: str) -> list[dict[str, Any]]:
        """The rows of a category, for example "multi_turn_base" or "live_simple"."""
        return self._rows(f"data/{self._file(category)}")

    def answers(self, category: str) -> list[dict[str, Any]]:
        """What is right for each row of `questions`, in the same order."""
        return self._rows(f"data/possible_answer/{self._file(category)}")

    def documents(self, api: str) -> list[dict[str, Any]]:
        """The tool schemas of an API class, in the release's own form."""
        return self._rows(f"data/multi_turn_func_doc/{self._api_module(api)}.json")

    def api(self, api: str) -> type:
        """An API class. Its module is imported here, after its text was compared with the manifest."""
        shared = f"{self.release.backends}/long_context.py"  # which the APIs' modules import
        if shared in self.manifest["files"]:
            self.check(shared)
        found: type = getattr(self._module(f"{self.release.backends}/{self._api_module(api)}"), api)
        return found

    @cached_property
    def more_functions(self) -> str:
        """What the user says when held-out functions arrive."""
        return str(self._module(self.release.wording).DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC)

    def reader(self, language: str) -> Any:
        """The release's function (text, type, type of the elements or None) -> value for "java" or
        "javascript" texts. It works with patterns and evaluates nothing."""
        short = {"java": "java", "javascript": "js"}[language]
        return getattr(self._module(f"{self.release.converters}/{short}_type_converter"), f"{short}_type_converter")

    def files(self) -> list[str]:
        """Every file that is used, relative to the package: what the manifest lists."""
        questions = [*(f"multi_turn_{v}" for v in MULTI_TURN), *self.release.categories]
        modules = [f"{self.release.backends}/{m}" for m in (*self.release.apis.values(), "long_context")]
        readers = [f"{self.release.converters}/{m}_type_converter" for m in ("java", "js")]
        listed = [
            *(f"data/{self._file(c)}" for c in questions),
            *(f"data/possible_answer/{self._file(c)}" for c in questions if c not in UNANSWERED),
            *(f"data/multi_turn_func_doc/{m}.json" for m in self.release.apis.values()),
            *(f"{m}.py" for m in (*modules, *readers, self.release.wording)),
        ]
        return sorted(f for f in listed if (self.folder / f).is_file())

    def sha256(self, file: str) -> str:
        """The hash of a file of the package."""
        try:
            return hashlib.sha256((self.folder / file).read_bytes()).hexdigest()
        except OSError as error:
            raise DataError(
                f"BFCL: {self.folder / file} cannot be read ({error.strerror or error}); install the release again: "
                f"{self.release.install}"
            ) from error

    def check(self, file: str) -> None:
        """Raise DataError unless the file is the one that the manifest was made from."""
        if file in self._checked:
            return
        expected, found = self.manifest["files"].get(file), self.sha256(file)
        if found != expected:
            raise DataError(
                f"BFCL: {self.folder / file} has sha256 {found[:16]}…, but our split was made from "
                f"{str(expected)[:16]}…: it is another version, or was changed. Install {self.manifest['made_from']}: "
                f"{self.release.install}"
            )
        self._checked.add(file)

    def _rows(self, file: str) -> list[dict[str, Any]]:
        self.check(file)
        text = (self.folder / file).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def _module(self, path: str) -> ModuleType:
        self.check(f"{path}.py")
        name = f"{self.release.package}.{path.replace('/', '.')}"
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise ConfigError(f"environment: {name} cannot be imported ({error}): {self.release.install}") from error

    def _file(self, category: str) -> str:
        return f"{self.release.prefix}{self.release.renamed.get(category, category)}.json"

    def _api_module(self, api: str) -> str:
        if api not in self.release.apis:
            raise DataError(f"BFCL: a row names the API {api!r}; known: {', '.join(self.release.apis)}")
        return self.release.apis[api]
