from typing import ClassVar


class _Logger:
    disabled: ClassVar[list[str]] = []

    def disable(self, name: str) -> None:
        self.disabled.append(name)


logger = _Logger()
