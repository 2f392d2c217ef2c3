"""Make the pictures at the top of the README: the output of `make demo`, beside the report that it writes.

`.venv/bin/python docs/images/demo.py` runs the demo and writes demo-light.png and demo-dark.png beside this file. It
needs Chromium: the command in the environment variable CHROMIUM, by default `chromium`.
"""

import os
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

WIDE, HIGH, TERMINAL = 1280, 970, 84
"""Width and height of the picture in pixels, and the width of the terminal in characters."""

PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; font: 11.5px/1.42 "DejaVu Sans Mono", monospace; }}
main {{ display: grid; grid-template-columns: 610px 1fr; gap: 18px; padding: 14px; height: {high}px;
  box-sizing: border-box; }}
pre, .page {{ margin: 0; border-radius: 10px; overflow: hidden; border: 1px solid #8884; font: inherit; }}
pre {{ padding: 16px 18px; background: #14181d; color: #d7dde3; white-space: pre-wrap; }} b {{ color: #7cc4ff; }}
.page {{ position: relative; background: white; }}
iframe {{ border: 0; width: 1120px; height: 1680px; zoom: .56; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1117; }} .page {{ background: #191a1c; }} }}
</style><main><pre>{said}</pre><div class="page"><iframe src="{report}"></iframe></div></main>"""


def main() -> None:
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory(dir=here) as folder:
        said = subprocess.run(
            [sys.executable, "-m", "mercer.cli", "demo", "--out", "out"],
            cwd=folder, env=os.environ | {"COLUMNS": str(TERMINAL)}, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        lines = [f"<b>{escape(line)}</b>" if line[:1].isdigit() else escape(line) for line in said.splitlines()]
        page = Path(folder) / "demo.html"
        page.write_text(
            PAGE.format(high=HIGH, said="$ <b>make demo</b>\n" + "\n".join(lines), report="out/diabetes.html")
        )
        for scheme, name in enumerate(("dark", "light")):
            shoot(page, here / f"demo-{name}.png", scheme)


def shoot(page: Path, picture: Path, scheme: int) -> None:
    """Save a page as a picture of few colours; scheme 0 is dark, 1 is light."""
    from PIL import Image  # comes with matplotlib

    browser = os.environ.get("CHROMIUM", "chromium")
    settings = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"]
    settings += [
        f"--window-size={WIDE},{HIGH}",
        "--force-device-scale-factor=1.5",
        f"--blink-settings=preferredColorScheme={scheme}",
    ]
    subprocess.run([browser, *settings, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True)
    Image.open(picture).convert("RGB").quantize(200, method=Image.Quantize.FASTOCTREE).save(picture, optimize=True)


if __name__ == "__main__":
    main()
