"""`make test-versions`: the tests on other Pythons and other releases of what Mercer needs, from a built wheel.

Three environments, each in out/versions:

* lowest: the oldest supported Python with the lowest releases that pyproject.toml allows;
* oldest: the oldest supported Python with the releases of constraints.txt;
* newest: the newest Python that is installed here and that the compiler supports, with the releases of constraints.txt.

The wheel is built once and installed in each, so what is tested is what a user would get. Arguments go to pytest:
`python tests/versions.py -k laws`. Names of environments before them choose some: `python tests/versions.py lowest`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
OUT = TOP / "out" / "versions"
OLDEST, NEWEST = 11, 14
"""Minor releases of Python 3: the oldest that is supported, and the newest that Numba may support."""
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]


def python(*minors: int) -> str | None:
    """The first of these Pythons that is installed and runs."""
    for minor in minors:
        for path in (f"python3.{minor}", sys.executable):
            found = shutil.which(path)
            asked = [found, "-c", "import sys; print(sys.version_info.minor)"]
            if found and subprocess.run(asked, capture_output=True, text=True).stdout.strip() == str(minor):
                return found
    return None


def lowest() -> list[str]:
    """Every lower bound of pyproject.toml as the release itself."""
    extras = PROJECT["optional-dependencies"]
    # A release of what matplotlib needs that does not warn of matplotlib's own age.
    more = ["pyparsing>=3.2.0"]
    bounds = more + PROJECT["dependencies"] + extras["cli"] + extras["plot"] + extras["test"]
    return [f"{name}=={release}" for name, release in (re.findall(r"^([\w-]+)>=([\w.]+)", line)[0] for line in bounds
                                                       if ">=" in line)]  # fmt: skip


def environment(name: str, interpreter: str, wheel: Path, releases: list[str]) -> Path:
    """A fresh environment with the wheel in it; the path of its Python."""
    place = OUT / name
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", place], check=True)
    (place / "constraints.txt").write_text("\n".join(releases) + "\n")
    install = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", place / "constraints.txt", f"{wheel}[test]"], check=True)
    return place / "bin" / "python"


def main(arguments: list[str]) -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    pinned = (TOP / "constraints.txt").read_text().split()
    old, new = python(OLDEST), python(*range(NEWEST, OLDEST - 1, -1))
    plans = {"lowest": (old, lowest()), "oldest": (old, pinned), "newest": (new, pinned)}
    wanted = [plan for plan in plans if plan in arguments] or list(plans)
    given = [argument for argument in arguments if argument not in plans] or ["-n", "2", "-q"]
    for old_wheel in OUT.glob("*.whl"):
        old_wheel.unlink()
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", OUT, TOP], check=True)
    (wheel,) = OUT.glob("*.whl")
    failed = []
    for name in wanted:
        interpreter, releases = plans[name]
        if interpreter is None:
            print(f"== {name}: Python 3.{OLDEST} is not installed, so this environment is left out", flush=True)
            failed.append(name)
            continue
        if name == "newest" and interpreter == old:
            print(f"== {name}: no Python above 3.{OLDEST} is on the PATH, so this environment is left out", flush=True)
            continue
        program = environment(name, interpreter, wheel, releases)
        said = "import sys, sklearn, numba; print(sys.version.split()[0], sklearn.__version__, numba.__version__)"
        versions = subprocess.run([program, "-c", said], capture_output=True, text=True).stdout.split()
        print("== {}: Python {}, scikit-learn {}, Numba {}".format(name, *versions), flush=True)
        # Old releases are deprecated against by what they need in turn: that is not ours to mend.
        quiet = ["-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning"] if name == "lowest" else []
        tests = [program, "-m", "pytest", *quiet, "-p", "no:cacheprovider", *given]
        if subprocess.run(tests, cwd=TOP).returncode:
            failed.append(name)
    print(f"{len(wanted) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
