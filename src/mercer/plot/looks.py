"""The style of the plots, light or dark, which is set only while a plot is drawn."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.validation import check_choice
from mercer.words import cut

SIZE = (6.0, 4.0)
"""Width and height in inches: 600 pixels are enough to read everything."""
DOTS = 100
"""Pixels per inch."""
PAD = 0.08
"""The margin around a figure, in inches."""
SHARE = 0.75
"""The share of a figure's width that the axes take, without labels and ticks."""
INSIDE = 4
"""A legend with more entries than this is below the axes."""
PIXELS = 2000
"""More points than this are drawn as an image, also in vector graphics."""
ENTRY, LETTER = 0.65, 0.068
"""The width in inches of a legend entry without its text, and of a character."""


@dataclass(frozen=True)
class Palette:
    """The colours of one style, by purpose.

    Attributes
    ----------
    face, ink : str
        The background; text and axes.
    grey, grid : str
        Reference lines; faint lines in the background.
    red, blue, green, gold, violet : str
        Red marks what is most important or wrong, green what is right. They are distinguishable by colour-blind
        readers.
    """

    name: str
    face: str
    ink: str
    grey: str
    grid: str
    red: str
    blue: str
    green: str
    gold: str
    violet: str

    @property
    def series(self) -> tuple[str, ...]:
        """Colours of curves in one plot."""
        return self.blue, self.red, self.green, self.gold, self.violet, self.ink, self.grey

    def wash(self, colour: str, share: float) -> tuple[float, ...]:
        """A colour mixed with the background."""
        from matplotlib.colors import to_rgb

        return tuple(share * a + (1 - share) * b for a, b in zip(to_rgb(colour), to_rgb(self.face)))

    def amounts(self) -> Any:
        """A colour map from small to large."""
        return _colormap("amounts", [self.face, self.blue, self.ink])

    def signs(self) -> Any:
        """A colour map from negative through zero to positive."""
        return _colormap("signs", [self.blue, self.face, self.red])


LIGHT = Palette(
    "light", "#ffffff", "#222222", "#868c93", "#e4e6e8", "#c8371b", "#1f6fb2", "#0b9c80", "#c08a00", "#d070b0"
)
DARK = Palette(
    "dark", "#16191d", "#e6e6e6", "#8d949c", "#2c3138", "#f1796b", "#6cb2eb", "#3fbf9a", "#f2d06b", "#9a6fd0"
)
_PALETTES = {palette.name: palette for palette in (LIGHT, DARK)}
_current: ContextVar[Palette] = ContextVar("palette", default=LIGHT)


@contextmanager
def style(name: str = "light") -> Iterator[Palette]:
    """Use this style for plots inside a `with` block; the settings are restored afterwards.

    Yields the colours, for your own additions. Inside the block, everything that matplotlib draws has this style, and
    SVG files keep text as text. Axes that were made elsewhere keep their colours, and plots in them use colours that
    suit them.

    Parameters
    ----------
    name : str
        "light" or "dark".

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import mercer as mc
    >>> with mc.plot.style("dark") as colours:
    ...     shape = mc.plot.KernelShape.from_kernel(mc.Gaussian(1.0))
    >>> colours.face, matplotlib.rcParams["axes.facecolor"]
    ('#16191d', 'white')
    >>> matplotlib.pyplot.close("all")
    """
    check_choice(name, "name", _PALETTES)
    pyplot()
    import matplotlib as mpl

    token = _current.set(_PALETTES[name])
    try:
        with mpl.rc_context(_settings(_PALETTES[name])):
            yield _PALETTES[name]
    finally:
        _current.reset(token)


def svg(picture: Any, *, clear: bool = False) -> str:
    """A plot as SVG with text as text; the same plot gives the same SVG.

    Parameters
    ----------
    picture
        A display that was drawn, or a figure of matplotlib.
    clear : bool
        Whether the background is transparent.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import mercer as mc
    >>> text = mc.plot.svg(mc.plot.KernelShape.from_kernel(mc.Gaussian(1.0)))
    >>> text[text.index("<svg") :][:4], "distance" in text
    ('<svg', True)
    >>> matplotlib.pyplot.close("all")
    """
    pyplot()
    import matplotlib as mpl

    figure = getattr(picture, "figure_", picture)
    if not hasattr(figure, "savefig"):
        raise InvalidInput(
            "`picture` must be a display that was drawn, or a figure of matplotlib",
            got=type(picture).__name__,
            advice="Pass a display such as mc.plot.KernelShape.from_kernel(mc.Gaussian(1.0)).",
        )
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mercer"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # text stays text: the viewer's fonts draw it
        figure.savefig(out, format="svg", metadata={"Date": None}, transparent=clear)
    return out.getvalue()


class Display:
    """A plot; once it is drawn it has the axes `ax_` and the figure `figure_`."""

    ax_: Any
    figure_: Any

    def _drawn(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self


@contextmanager
def canvas(ax: Any = None, size: tuple[float, float] = SIZE, *, square: bool = False) -> Iterator[tuple[Any, Palette]]:
    """These axes, or new ones in the current style, and colours that are visible on them.

    `square` is for axes with equal units.
    """
    plt = pyplot()
    import matplotlib as mpl

    if ax is not None and not hasattr(ax, "get_facecolor"):
        raise InvalidInput(
            "`ax` must be axes of matplotlib",
            got=type(ax).__name__,
            advice="Pass one of several axes, such as axes[0].",
        )
    palette = _current.get() if ax is None else _seen_on(ax)
    with mpl.rc_context(_settings(palette)):
        if ax is None:
            figure, ax = plt.subplots(figsize=size, layout="compressed" if square else "constrained")
            figure.get_layout_engine().set(w_pad=PAD, h_pad=PAD)
            # Ticks are made when they are drawn, perhaps after the context has ended.
            ax.tick_params(which="both", color=palette.ink, labelcolor=palette.ink, labelsize=9, gridOn=False)
        yield ax, palette


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'mercer[plot]'.") from error
    return plt


def legend(ax: Any, handles: Sequence[Any] | None = None, *, below: bool | None = None, **where: Any) -> None:
    """Draw a legend: in the axes where it hides least, or below them if it has many entries."""
    entries = list(handles) if handles is not None else ax.get_legend_handles_labels()[0]
    if not entries:
        return
    if below if below is not None else len(entries) > INSIDE:
        longest = max(len(str(handle.get_label())) for handle in entries)
        wide = ax.figure.get_figwidth() * ax.get_position().width / SHARE
        rows = -(-len(entries) // max(int(wide / (ENTRY + LETTER * longest)), 1))
        where = {
            "loc": "upper center",
            "bbox_to_anchor": (0.5, 0.0),
            "borderaxespad": 4.6,  # in characters: below the ticks and the label of the axis
            "ncols": -(-len(entries) // rows),
            "frameon": False,
        } | where
    drawn = ax.legend(handles=entries, **({"loc": "best"} | where))
    for handle in drawn.legend_handles:  # points that are small and faint among many must be visible alone
        if hasattr(handle, "set_markersize"):
            handle.set(markersize=max(handle.get_markersize(), 4.0), alpha=max(handle.get_alpha() or 1.0, 0.8))
        elif hasattr(handle, "get_sizes"):
            handle.set_sizes(np.maximum(handle.get_sizes(), 18.0))


def beside(ax: Any, picture: Any, label: str, **how: Any) -> None:
    """Draw a bar with the values of a colour map."""
    bar = ax.figure.colorbar(picture, ax=ax, fraction=0.05, pad=0.02, **how)
    ink = ax.xaxis.label.get_color()
    bar.set_label(label, color=ink)
    bar.ax.tick_params(color=ink, labelcolor=ink, labelsize=9)
    bar.outline.set_visible(False)


def caption(text: str, most: int) -> str:
    """A text for a plot, cut if it is too long, and not interpreted as TeX."""
    return plain(cut(text, most))


def plain(text: str) -> str:
    """A text that matplotlib does not interpret as TeX."""
    return text.replace("$", r"\$")


def numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Values as float64, or an error that names them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{name} must be numbers", got=cut(repr(values), 80), advice="Pass numbers, or convert them with float."
        ) from None


def dots(n: int) -> dict[str, Any]:
    """The style of n points: single points are visible, and many do not hide what is below them."""
    share = min(1.0, (200 / max(n, 1)) ** 0.3)
    return {"ms": max(4.0 * share, 1.6), "mew": 0, "alpha": max(0.8 * share, 0.25), "rasterized": n > PIXELS}


def _settings(palette: Palette) -> Any:
    from cycler import cycler

    ink, face = palette.ink, palette.face
    return {
        "figure.facecolor": face, "axes.facecolor": face, "savefig.facecolor": "auto", "figure.dpi": DOTS,
        "savefig.dpi": DOTS,
        "text.color": ink, "axes.labelcolor": ink, "axes.edgecolor": ink, "axes.titlecolor": ink,
        "xtick.color": ink, "ytick.color": ink, "xtick.labelcolor": ink, "ytick.labelcolor": ink,
        "font.family": "sans-serif", "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "center",
        "axes.titlepad": 8, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9, "legend.fontsize": 9,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": False, "grid.color": palette.grid,
        "axes.linewidth": 0.8, "lines.linewidth": 1.8, "patch.linewidth": 0.8,
        "axes.prop_cycle": cycler(color=palette.series), "axes.unicode_minus": True,
        "legend.frameon": True, "legend.framealpha": 0.9, "legend.facecolor": face, "legend.edgecolor": face,
        "axes.formatter.limits": (-4, 5),
        "legend.labelcolor": ink, "svg.fonttype": "none", "text.usetex": False,
    }  # fmt: skip


def _seen_on(ax: Any) -> Palette:
    """The dark palette if the axes are dark, or their figure if they are transparent; else the light one."""
    from matplotlib.colors import to_rgba

    *rgb, opaque = to_rgba(ax.get_facecolor())
    if opaque < 0.5:
        *rgb, opaque = to_rgba(ax.figure.get_facecolor())
    light = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), rgb))
    return DARK if light < 0.4 and opaque >= 0.5 else LIGHT


def _colormap(name: str, colours: list[str]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, colours)
