"""The throughput of a run as a picture: our figures and the peers' per view, on a log axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belvedere.bench.figures import PUBLISHED
from belvedere.bench.peers import duckdb_refresh, lmdb_by_hand
from belvedere.bench.results import END_TO_END, MAINTAIN, Results
from belvedere.bench.targets import EPOCH
from belvedere.bench.views import EVERY

_LABELS = {
    "V1": "V1\nselection",
    "V2": "V2\ncount, sum",
    "V3": "V3\nmin, max",
    "V4": "V4\nindex",
    "V_all": "V_all\nthe four",
    "V5": "V5\njoin",
}
_PUBLISHED = {"dbsp 0.375 (Feldera), 2 workers": "#b9a7d6", "Flink SQL 2.3, heap state": "#d8cfe6"}


@dataclass(frozen=True, slots=True)
class _Series:
    """One bar per view: thousand operations per second, None where nothing was measured."""

    label: str
    color: str
    kops: list[float | None]
    hatch: str = ""


def plot(results: Results, path: Path) -> None:
    """Draws to `path`; its ending chooses the format."""
    pyplot = _pyplot()
    shown = [s for s in _series(results) if any(s.kops)]
    figure, axes = pyplot.subplots(figsize=(11, 5.6), dpi=130)
    for number, series in enumerate(shown):
        _bars(axes, series, number, len(shown))
    _dress(axes, results)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "the chart needs matplotlib: pip install 'belvedere[bench]'"
        ) from missing
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _series(results: Results) -> list[_Series]:
    def ours(figure: str, size: int | None = None) -> Callable[[str], float | None]:
        return lambda view: _kops(
            found.ops_per_s if (found := results.rate(figure, view, size)) else None
        )

    def peer(engine: str) -> Callable[[str], float | None]:
        return lambda view: _kops(results.peer(engine, view))

    largest = max((r.size for r in results.rates if r.figure == MAINTAIN), default=None)
    rows = [
        _Series(
            f"belvedere maintain, epochs of {largest or 0:,}",
            "#0b4f6c",
            _each(ours(MAINTAIN, largest)),
        ),
        _Series("belvedere end to end", "#e4572e", _each(ours(END_TO_END))),
        _Series("LMDB by hand, this run", "#6b7280", _each(peer(lmdb_by_hand.ENGINE))),
        _Series("DuckDB recompute, this run", "#c2c7cf", _each(peer(duckdb_refresh.ENGINE))),
    ]
    if largest != EPOCH:
        rows.insert(
            1,
            _Series(
                f"belvedere maintain, epochs of {EPOCH:,}", "#3f9cc0", _each(ours(MAINTAIN, EPOCH))
            ),
        )
    published = {p.engine: p for p in PUBLISHED}
    return rows + [
        _Series(f"{name}, not in this run", c, [published[name].kops.get(v) for v in EVERY], "//")
        for name, c in _PUBLISHED.items()
    ]


def _each(value: Callable[[str], float | None]) -> list[float | None]:
    return [value(view) for view in EVERY]


def _kops(ops_per_s: float | None) -> float | None:
    return None if ops_per_s is None else ops_per_s / 1_000


def _bars(axes: Any, series: _Series, number: int, count: int) -> None:
    width = 0.86 / count
    places = [i + (number - (count - 1) / 2) * width for i, kops in enumerate(series.kops) if kops]
    heights = [kops for kops in series.kops if kops]
    bars = axes.bar(
        places,
        heights,
        width * 0.94,
        label=series.label,
        color=series.color,
        hatch=series.hatch,
        edgecolor="white",
        linewidth=0.5,
    )
    axes.bar_label(
        bars, labels=[f"{h:,.0f}" for h in heights], fontsize=6.5, padding=2, color="#333333"
    )


def _dress(axes: Any, results: Results) -> None:
    axes.set_yscale("log")
    axes.set_xticks(range(len(EVERY)), [_LABELS[view] for view in EVERY])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel("thousand operations per second (log)")
    axes.set_ylim(bottom=10)
    axes.grid(axis="y", which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", length=0)
    machine = results.machine
    axes.set_title(
        f"View maintenance, {machine.cores} cores, {machine.date}",
        loc="left",
        fontsize=11,
        fontweight="bold",
    )
    axes.legend(
        ncols=3, fontsize=7.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.11)
    )
