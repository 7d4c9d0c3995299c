"""What the machine gives: settings of torch that hold for the whole process."""

from __future__ import annotations

from typing import Literal


class Hardware:
    """Applied once, before the model is built.

    threads: of torch's operators (null: torch's own choice). precision: of float32 matrix products
    on a GPU: highest (float32), high (TF32), medium (bfloat16).
    """

    def __init__(self, *, threads: int | None, precision: Literal["highest", "high", "medium"]) -> None:
        import torch  # noqa: PLC0415  late: a configuration is bound without torch

        if threads is not None:
            if threads < 1:
                raise ValueError(f"threads is {threads}; at least 1 is needed, or null for torch's own choice")
            torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        self.threads, self.precision = threads, precision
