"""belvedere bench: the benchmark of the project, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

QUICK = {
    "ops": 50_000,
    "keys": 12_500,
    "flat_rows": (10_000, 50_000),
    "flat_ops": (1_000,),
    "flat_repeats": 2,
    "probes": 5,
    "puts": 100,
    "reads": 2_000,
    "sustained_ops": 100_000,
    "overwrites": 50_000,
    "overwritten": 2_000,
    "transactions": 50,
    "waiting": 5_000,
    "matches": (1, 10),
    "tpch_scales": (0.001, 0.002),
    "tpch_orders": 50,
    "fan_out": 20_000,
    "source_rows": 10_000,
    "source_ops": 5_000,
    "source_commits": 200,
    "source_rounds": 1,
    "hbase_ops": 20_000,
    "hbase_puts": 5_000,
    "hbase_rounds": 1,
}


def bench(
    ctx: typer.Context,
    views: Annotated[
        str | None,
        typer.Option(metavar="V1,V2,...", help="Which views: V1, V2, V3, V4, V_all. Default: all."),
    ] = None,
    scenarios: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Which scenarios. Default: all.")
    ] = None,
    ops: Annotated[
        int | None,
        typer.Option(min=1_000, metavar="N", help="Operations of the log. Default: 1,000,000."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Small sizes: minutes instead of an hour, figures only to look at."
        ),
    ] = False,
    work: Annotated[Path, typer.Option(metavar="DIR", help="Where logs and results go.")] = Path(
        "bench-out"
    ),
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the results there.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the throughput; needs matplotlib."),
    ] = None,
) -> None:
    """Measure this machine, beside peers.

    Throughput, freshness, reads and memory; the results are held against the targets.
    """
    from belvedere.bench import report, suite
    from belvedere.bench.scenarios.settings import Settings
    from belvedere.bench.views import NAMES

    chosen = _chosen(views, NAMES, "--views")
    parts = _chosen(scenarios, suite.SCENARIOS, "--scenarios")
    sizes: dict[str, object] = dict(QUICK, memory_ops=100_000) if quick else {}
    if ops is not None:
        sizes |= {"ops": ops, "keys": max(1, ops // 4)}
    work.mkdir(parents=True, exist_ok=True)
    errors = Console(stderr=True)
    with errors.status("writing the log ...") as spinner:

        def say(part: str) -> None:
            errors.print(f"[dim]measuring[/dim] {part}")
            spinner.update(f"measuring {part} ...")

        results = suite.run(Settings(work=work, views=chosen, **sizes), parts, say)  # type: ignore[arg-type]  # sizes by name
    results.save(work / "results.json")
    if json is not None:
        results.save(json)
    report.report(results)
    if plot is not None:
        report.plot(results, plot)
    typer.echo(f"results: {json or work / 'results.json'}" + (f", picture: {plot}" if plot else ""))


def _chosen(text: str | None, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(
            f"there is no {', '.join(unknown)}: use {', '.join(known)}", param_hint=option
        )
    return names or known
