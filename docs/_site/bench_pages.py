"""The page "Benchmarks", from the result files that `make bench` writes to benchmarks/results.

A comparison in a file has the seconds of one task by library. The page shows the ratio of each other library to Mercer,
and the growth of tasks that were run at several sizes; then all tables of the files, with their targets.
"""

import functools
import re
import sys
import textwrap
from datetime import date
from typing import Any, NamedTuple

from pages import TOP

sys.path.insert(0, str(TOP / "benchmarks"))
import results

TITLES = {
    "gram": "Gram matrices and products",
    "ridge": "Kernel ridge, exact",
    "nystrom": "Kernel ridge on centres",
    "fourier": "Kernel ridge on frequencies",
    "scale": "Kernel ridge from a thousand to a million rows",
    "tuning": "Tuning",
    "svm": "Support vector machines",
    "glm": "Logistic and Poisson regression",
    "smoothing": "Local methods and densities",
    "perceptron": "Perceptrons",
    "kernel": "Kernel PCA",
    "strings": "Strings",
    "graphs": "Graphs",
    "series": "Time series",
    "fingerprints": "Fingerprints of molecules",
}
"""Titles of sections by the first word of the names of their jobs, in order; other jobs follow under their names."""

HEADLINES = {
    "Gaussian Gram matrix, 10 000 rows, 20 columns": (
        "gram-dense", "Gaussian Gram matrix, 10,000 × 20, float64", "scikit-learn rbf_kernel"),
    "Gaussian process, 2 000 rows, width and noise by the evidence": (
        "tuning-evidence-one", "Gaussian process by the evidence, one width, 2,000 × 20",
        "scikit-learn GaussianProcessRegressor"),
    "density of 100 000 values at 10 000 points": (
        "smoothing-density", "Density of 100,000 rows at 10,000 points, 1 column",
        "scikit-learn KernelDensity, rtol 1e-4"),
    "Weisfeiler-Lehman kernel of 1 000 networkx graphs": (
        "graphs-labels", "WeisfeilerLehman(5) of networkx graphs", "GraKeL"),
}  # fmt: skip
"""The rows of the README: job, task and other library by the words of the row."""


class Ratio(NamedTuple):
    """One other library at one task: what was done, and seconds of both."""

    job: str
    task: str
    size: float | None
    other: str
    seconds: float
    mercer: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.mercer


@functools.cache
def files() -> dict[str, dict[str, Any]]:
    return results.read()


def ratios(records: dict[str, dict[str, Any]]) -> list[Ratio]:
    """All comparisons with other libraries; variants of Mercer itself are no comparison."""
    return [
        Ratio(job, one["task"], one["size"], other, seconds, one["seconds"]["Mercer"])
        for job, record in records.items()
        for one in record["comparisons"]
        for other, seconds in one["seconds"].items()
        if not other.startswith("Mercer")
    ]


def growths(records: dict[str, dict[str, Any]]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Sizes and seconds by task and library, of tasks with three sizes or more."""
    found: dict[str, dict[str, dict[float, float]]] = {}
    for record in records.values():
        for one in record["comparisons"]:
            if one["size"]:
                for library, seconds in one["seconds"].items():
                    found.setdefault(one["task"], {}).setdefault(library, {})[one["size"]] = seconds
    return {
        task: {library: sorted(points.items()) for library, points in lines.items()}
        for task, lines in found.items()
        if max(len(points) for points in lines.values()) >= 3
    }


def spelled(seconds: float) -> str:
    """Seconds with three digits.

    >>> spelled(0.0049), spelled(13.04), spelled(1234.5), spelled(3.2e-06)
    ('0.0049 s', '13.0 s', '1234 s', '3.2 µs')
    """
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    if seconds >= 100:
        return f"{seconds:.0f} s"
    digits = f"{seconds:.3g}"
    return f"{digits}.0 s" if digits.isdigit() and seconds >= 10 else f"{digits} s"


def times(ratio: float) -> str:
    """A ratio in words.

    >>> times(7.31), times(42.3), times(2700.0)
    ('7.3×', '42×', '2 700×')
    """
    return f"{ratio:.1f}×" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}×".replace(",", " ")


def hardware(record: dict[str, Any]) -> str:
    about = record["machine"]
    return f"{about['processor']}, {about['vectors']}, {about['cores']} cores, {about['memory_gb']} GB"


def where(record: dict[str, Any]) -> tuple[str, str, str]:
    """Machine, versions and date of a result."""
    load = record["load"]
    machine = f"{hardware(record)}; {record['clock']}; load {load[0]:g} to {load[-1]:g}"
    numbers = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return machine, f"{numbers}, Mercer at {record['commit']}", record["date"]


def busy(records: list[dict[str, Any]]) -> str:
    """How much else the machine may have done while these results were measured, or nothing.

    >>> idle = {"machine": {"cores": 2}, "load": [0.1, 1.7]}
    >>> busy([idle]), busy([idle, idle | {"load": [1.7, 5.24]}])
    ('', 'load up to 5.24 on 2 cores, so other programs may have taken their share')
    """
    cores = records[0]["machine"]["cores"]
    load = max(one for record in records for one in record["load"])
    return f"load up to {load:g} on {cores} cores, so other programs may have taken their share" if load > cores else ""


def caution(records: list[dict[str, Any]]) -> str:
    """A warning if the machine may have been busy when one of the results was measured."""
    words = busy(records)
    if not words:
        return ""
    return (
        f"\n:::{{warning}}\nMeasured with a {words}: ratios can be off by a factor of two in either direction.\n:::\n"
    )


# --- the README -------------------------------------------------------------------------------------------------------


def headlines() -> list[tuple[str, Ratio]]:
    """The words and the comparison of each row of the README's table."""
    known = {(one.job, one.task, one.other): one for one in ratios(files())}
    return [(words, known[key]) for words, key in HEADLINES.items()]


def conditions() -> list[str]:
    """Where and when the rows of the README were measured, one item for all rows with the same answer."""
    found: dict[tuple[str, str, str, bool], list[tuple[int, dict[str, Any]]]] = {}
    for number, (job, _, _) in enumerate(HEADLINES.values(), start=1):
        record = files()[job]
        day = date.fromisoformat(record["date"])
        key = (f"{day.day} {day:%B %Y}", hardware(record), record["clock"], bool(busy([record])))
        found.setdefault(key, []).append((number, record))
    items = []
    for (day, machine, clock, loaded), rows in found.items():
        numbers = ", ".join(str(number) for number, _ in rows)
        which = "All rows" if len(found) == 1 else f"Row {numbers}" if len(rows) == 1 else f"Rows {numbers}"
        load = f"; {busy([record for _, record in rows])}, and ratios can be off by a factor of two" if loaded else ""
        items.append(textwrap.fill(f"* {which}: {day}, {machine}; {clock}{load}.", 120, subsequent_indent="  "))
    return items


def how_fast() -> str:
    """The README's table, and below it where and when it was measured, as Markdown."""
    rows = [
        f"| {words} | {spelled(one.mercer)} | {one.other.split()[0]} {spelled(one.seconds)} | {times(one.ratio)} |"
        for words, one in headlines()
    ]
    head = ["| task | Mercer | other library | faster by |", "|---|---:|---:|---:|"]
    return "\n".join([*head, *rows, "", *conditions()])


def picture() -> list[tuple[str, float]]:
    """The bars of the README's picture."""
    return [(f"{words}: {one.other.split()[0]}", one.ratio) for words, one in headlines()]


def described(rows: list[tuple[str, float]]) -> str:
    """Bars in words, which the file of the picture keeps.

    >>> described([("sum: peer", 2.04)])
    'sum: peer 2.0x'
    """
    return "; ".join(f"{words} {times(ratio).replace('×', 'x')}" for words, ratio in rows)


# --- drawings ---------------------------------------------------------------------------------------------------------


def bars(rows: list[tuple[str, float]], look: str, width: float = 7.6) -> Any:
    """A figure of ratios on a logarithmic axis, one bar each, with the ratio beside it."""
    import matplotlib.pyplot as plt

    import mercer as mc

    with mc.plot.style(look) as colours:
        figure, axes = plt.subplots(figsize=(width, 0.55 + 0.3 * len(rows)), layout="constrained")
        places = range(len(rows))[::-1]
        for place, (_, ratio) in zip(places, rows):
            colour = colours.series[0] if ratio >= 1 else colours.series[1]
            axes.barh(place, ratio - 1, left=1, height=0.55, color=colour)
            axes.annotate(
                times(ratio), (ratio, place), (4 if ratio >= 1 else -4, 0), textcoords="offset points", va="center",
                ha="left" if ratio >= 1 else "right", fontsize=8,
            )  # fmt: skip
        axes.set_xscale("log")
        least, most = min([0.8, *(r for _, r in rows)]), max([2.0, *(r for _, r in rows)])
        axes.set_xlim(least / 1.6 if least < 0.8 else 0.8, most * (most / least) ** 0.12)
        axes.axvline(1, color=colours.ink, lw=0.8)
        axes.set_yticks(list(places), [words for words, _ in rows], fontsize=8)
        axes.set_ylim(-0.7, len(rows) - 0.3)
        axes.set_xlabel("time of the other library, in units of Mercer's time", fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=False, axis="y")
        least, most = axes.get_xlim()
        steps = (1, 3) if most / least < 300 else (1,)
        ticks = [t for t in (step * 10.0**e for e in range(-3, 7) for step in steps) if least <= t <= most]
        axes.set_xticks(ticks, [f"{t:g}×" for t in ticks], fontsize=8)
        axes.minorticks_off()
    return figure


def lines(task: str, libraries: dict[str, list[Any]], look: str, x: str = "rows", y: str = "seconds") -> Any:
    """A figure of points in logarithms, such as seconds by size, one line for each library."""
    import matplotlib.pyplot as plt

    import mercer as mc

    with mc.plot.style(look) as colours:
        figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
        marks = "os^Dv<>P*X"
        for number, (library, points) in enumerate(libraries.items()):
            colour = colours.series[number % len(colours.series)]
            axes.loglog(
                *zip(*points), marker=marks[number % len(marks)], ms=4, color=colour, lw=2 if number == 0 else 1.3,
                label=library,
            )  # fmt: skip
        axes.set(xlabel=x, ylabel=y)
        axes.set_title(task, fontsize=9)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def image(name: str, alt: str) -> str:
    """Both looks of a drawing, as reStructuredText inside Markdown."""
    both = "".join(
        f".. image:: ../images/benchmarks/{name}-{look}.svg\n   :alt: {alt}\n   :class: only-{look}\n\n"
        for look in ("light", "dark")
    )
    return f"\n```{{eval-rst}}\n{both}```\n"


def drawn(figure: Any) -> str:
    import matplotlib.pyplot as plt

    import mercer as mc

    text = mc.plot.svg(figure, clear=True)
    plt.close(figure)
    return text


# --- the page ---------------------------------------------------------------------------------------------------------


def named(one: Ratio) -> str:
    """The task with its size; thousands are apart, as everywhere on the site.

    >>> named(Ratio("ridge", "fit of 2,000 × 20", 1e5, "peer", 2.0, 1.0))
    'fit of 2 000 × 20, 100 000 rows'
    """
    size = f", {one.size:,.0f} rows" if one.size else ""
    return re.sub(r"(?<=\d),(?=\d{3})", " ", f"{one.task}{size}")


def short(one: Ratio) -> str:
    """A line of a plot: the task with its size, and the other library."""
    task = named(one)
    return f"{task}: {one.other}" if len(task) + len(one.other) < 68 else f"{task}:\n{one.other}"


def cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def tables(record: dict[str, Any]) -> str:
    """The tables of a result with their targets, or what the script printed."""
    text = f"\n```text\n{record['text'].strip()}\n```\n" if "text" in record else ""
    for one in record["tables"]:
        text += f"\n**{one['title']}**\n\n| " + " | ".join(cell(word) or " " for word in one["header"]) + " |\n"
        text += "|---|" + "---:|" * (len(one["header"]) - 1) + "\n"
        text += "".join("| " + " | ".join(cell(word) or " " for word in row) + " |\n" for row in one["rows"])
        text += "\n" if one.get("targets") else ""
        for target in one.get("targets", []):
            met = "met" if target["measured"] >= target["required"] else "**missed**"
            text += f"* {target['what']}: {target['measured']:.3g}, target at least {target['required']:g}: {met}\n"
    return text


def measured(here: list[Ratio], records: dict[str, dict[str, Any]]) -> str:
    """One row for each comparison, with machine, versions and date."""
    if not here:
        return ""
    head = ["task", "other library", "faster by", "Mercer", "its time", "machine", "versions", "date"]
    text = f"\n:::{{div}} one-line\n\n| {' | '.join(head)} |\n|---|---|---:|---:|---:|---|---|---|\n"
    for one in here:
        answer = [cell(named(one)), cell(one.other), times(one.ratio), spelled(one.mercer), spelled(one.seconds)]
        text += f"| {' | '.join([*answer, *where(records[one.job])])} |\n"
    return f"{text}\n:::\n"


def sections(records: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The jobs by the title of their section."""
    found: dict[str, list[str]] = {title: [] for title in TITLES.values()}
    for job in records:
        found.setdefault(TITLES.get(job.split("-")[0], job.replace("-", " ").capitalize()), []).append(job)
    return {title: jobs for title, jobs in found.items() if jobs}


def pages() -> dict[str, str]:
    """The page and its drawings, by their places on the site."""
    records = files()
    everything = ratios(records)
    missed = [(job, one["title"], target) for job, record in records.items() for one in record["tables"]
              for target in one.get("targets", []) if target["measured"] < target["required"]]  # fmt: skip
    text = (
        "# Benchmarks\n\nHow fast Mercer is beside other libraries, at equal accuracy, and which targets it misses. "
        "This page is generated from the result files of `make bench`, which runs all benchmarks, goes on where it was "
        "interrupted, and keeps machine, versions and date with every result.\n\n"
        "Other libraries run in the same process as Mercer, in turns, on the same data. Each time is the shortest of "
        "several runs (slow libraries get fewer, at least one). Results with *processor time of one thread* come from "
        "a machine that was busy with other work: each library had one thread, and the time is what the processor "
        "spent on it. [Measurements and protocols](measurements.md) has accuracy on real data, and how it was "
        "measured.\n\n"
        f"Mercer is at least as fast in {sum(one.ratio >= 1 for one in everything)} of {len(everything)} comparisons; "
        f"{len(missed)} targets are missed, which the tables mark.\n"
    )
    result = {}
    growing = growths(records)
    for title, jobs in sections(records).items():
        name = title.lower().replace(" ", "-").replace(",", "")
        text += f"\n## {title}\n{caution([records[job] for job in jobs])}"
        here = [one for one in everything if one.job in jobs]
        if here:
            for look in ("light", "dark"):
                rows = [(short(one), one.ratio) for one in here]
                result[f"images/benchmarks/{name}-{look}.svg"] = drawn(bars(rows, look, width=9.0))
            text += image(name, f"Times of other libraries in units of Mercer's: {title}")
        tasks = [one["task"] for job in jobs for one in records[job]["comparisons"]]
        for number, task in enumerate([task for task in dict.fromkeys(tasks) if task in growing]):
            for look in ("light", "dark"):
                result[f"images/benchmarks/{name}-{number}-{look}.svg"] = drawn(lines(task, growing[task], look))
            text += image(f"{name}-{number}", f"Seconds by the number of rows: {task}")
        for number, one in enumerate(curve for job in jobs for curve in records[job].get("curves", [])):
            for look in ("light", "dark"):
                figure = lines(one["title"], one["lines"], look, one["x"], one["y"])
                result[f"images/benchmarks/{name}-curve-{number}-{look}.svg"] = drawn(figure)
            text += image(f"{name}-curve-{number}", f"{one['y'].capitalize()} by {one['x']}: {one['title']}")
        text += measured(here, records)
        for job in jobs:
            machine, numbers, date = where(records[job])
            text += f"\n:::{{dropdown}} All tables of `{records[job]['command']}`\n{machine}. {numbers}. {date}, "
            text += f"{records[job]['seconds']} s.\n{tables(records[job])}\n:::\n"
    result["understand/benchmarks.md"] = text
    return result
