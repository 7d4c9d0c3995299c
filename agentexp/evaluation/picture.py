"""report.png: the learning curve with its interval, and before/after bars. Draws a result; measures nothing."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from agentexp.stats import short

INK, GREY, BEFORE, AFTER = "#222222", "#8a8a8a", "#b9c4d0", "#2a6fb0"


def draw(result: Mapping[str, Any]) -> bytes:
    """A result.json as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  late: half a second
    from matplotlib.figure import Figure  # noqa: PLC0415  no pyplot: no global state, no display

    figure = Figure(figsize=(8.4, 3.4), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    curve_axes, bar_axes = figure.subplots(1, 2, width_ratios=[2.2, 1])
    for axes in (curve_axes, bar_axes):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=8)
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
    _curve(curve_axes, result)
    _bars(bar_axes, result)
    title = f"{result['name']}, seed {result['seed']}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold", color=INK)
    if result.get("label"):
        figure.supxlabel(result["label"], fontsize=7.5, color=GREY, x=0.01, ha="left")
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _curve(axes: Any, result: Mapping[str, Any]) -> None:
    points = result["curve"]
    at = [p["iteration"] for p in points]
    value, low, high = ([p["success"][key] for p in points] for key in ("value", "low", "high"))
    axes.fill_between(at, low, high, color=AFTER, alpha=0.15, linewidth=0, label="95 % interval")
    axes.plot(at, value, color=AFTER, linewidth=1.8, marker="o", markersize=3.5, label=result["decoding"])
    axes.set_ylim(0, max(0.1, min(1.0, max(high, default=1.0) * 1.15)))
    axes.set_xlabel("iteration", fontsize=8, color=INK)
    axes.set_ylabel(f"success, {result['split']}", fontsize=8, color=INK)
    axes.legend(fontsize=7.5, frameon=False, loc="lower right")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _bars(axes: Any, result: Mapping[str, Any]) -> None:
    decodings = [d for d in ("success", "greedy") if d in result["after"]]
    top = 0.0
    for offset, when, colour in ((-0.19, "before", BEFORE), (0.19, "after", AFTER)):
        if result[when] is None:
            continue
        for x, decoding in enumerate(decodings):
            e = result[when][decoding]
            axes.bar(x + offset, e["value"], 0.36, color=colour, label=when if x == 0 else None)
            axes.errorbar(
                x + offset,
                e["value"],
                yerr=[[e["value"] - e["low"]], [e["high"] - e["value"]]],
                color=INK,
                linewidth=1,
                capsize=2.5,
            )
            axes.annotate(
                short(e["value"]),
                (x + offset, e["high"]),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=7.5,
                color=INK,
            )
            top = max(top, e["high"])
    axes.set_xticks(range(len(decodings)), ["sampled" if d == "success" else d for d in decodings])
    axes.set_xlim(-0.6, len(decodings) - 0.4)
    axes.set_ylim(0, max(0.1, top * 1.3))
    axes.set_yticks([t for t in axes.get_yticks() if t <= 1.0])
    axes.set_title(f"{result['games']} games", fontsize=8, color=GREY, loc="right")
    axes.legend(fontsize=7.5, frameon=False, loc="upper left", ncols=2)
