"""Does `mercer fit --time` bind? Wall and processor seconds of the whole command, for every model and several tables.

    python benchmarks/budget.py --data DIR                           # every model on every table, --time 15 --report
    python benchmarks/budget.py --data DIR --only bike_hour,adult --models auto,gp --seconds 5,15
    python benchmarks/budget.py --data DIR --busy                    # on a busy machine: one thread, its processor time

Each command runs in a process of its own and includes the start of Python, the fit, the scores, the feature importance,
the model file and the report (`--no-report` leaves it out). With `--busy` the clock of the fit is the processor time of
the process, so that other programs do not end it early. A time above that of `--time` is marked by "!", a search that
the clock ended early by "e".
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import machine

TABLES: dict[str, tuple[str, ...]] = {
    "california_housing.parquet": ("--target", "medianHouseValue"),
    "bike_hour.csv.gz": ("--target", "cnt", "--drop", "casual", "--drop", "registered", "--drop", "instant"),
    "adult.parquet": ("--target", "income", "--drop", "split"),
    "swmotorcycle.parquet": ("--target", "ClaimNb", "--task", "regression", "--drop", "ClaimAmount"),
    "spam.csv.gz": ("--target", "type"),
    "sms_spam.csv.gz": ("--target", "label"),
    "letter.csv.gz": ("--target", "lettr"),
    "diabetes_efron.csv.gz": ("--target", "target"),
}
"""Files and the options that go with them."""
MODELS = ("auto", "ridge", "gp", "svm", "logistic", "poisson", "nw", "neighbors", "local", "linear")
BUSY = (
    "import time; from mercer.models.auto.plan import Clock; from mercer.cli.speaking import Voice; "
    "Clock.now = staticmethod(time.process_time); Voice.seconds = property(lambda voice: time.process_time()); "
)
RUN = "import sys; sys.argv[0] = 'mercer'; from mercer.cli import main; main()"


def fit(path: Path, options: tuple[str, ...], *, busy: bool) -> tuple[float, float, str]:
    """Wall and processor seconds of a command, and its end: "", "e" (ended early) or the refusal."""
    environment = dict(os.environ)
    if busy:
        environment |= dict.fromkeys(("MERCER_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    code = (BUSY if busy else "") + RUN
    done = subprocess.run(
        [sys.executable, "-c", code, "fit", str(path), *options, "--json"], capture_output=True, text=True,
        env=environment, check=False,
    )  # fmt: skip
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        return wall, processor, done.stderr.strip().splitlines()[-1][:90]
    return wall, processor, "" if json.loads(done.stdout)["in_time"] else "e"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MERCER_DATA", "../shared/data")))
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    parser.add_argument("--models", default=",".join(MODELS), help="names of models, separated by commas")
    parser.add_argument("--seconds", default="15", help="values of --time, separated by commas")
    parser.add_argument("--no-report", action="store_true")
    parser.add_argument("--busy", action="store_true", help="one thread, and its processor time")
    options = parser.parse_args()
    machine()
    only, refused = set(filter(None, options.only.split(","))), {}
    print("| table | model | --time | wall s | processor s | |\n|---|---|---:|---:|---:|---|")
    for name, arguments in TABLES.items():
        table = name.split(".")[0]
        if only and table not in only:
            continue
        for model in options.models.split(","):
            for seconds in options.seconds.split(","):
                with tempfile.TemporaryDirectory() as folder:
                    report = () if options.no_report else ("--report", f"{folder}/report.html")
                    own = ("--model", model, "--time", seconds, "--out", f"{folder}/model.mercer", *report)
                    wall, processor, end = fit(options.data / name, (*arguments, *own), busy=options.busy)
                if len(end) > 1:
                    refused[f"{table}, {model}"] = end
                    break
                late = "!" if (processor if options.busy else wall) > float(seconds) else ""
                print(f"| {table} | {model} | {seconds} | {wall:.1f} | {processor:.1f} | {late}{end} |", flush=True)
    for name, why in refused.items():
        print(f"refused: {name}: {why}")


if __name__ == "__main__":
    main()
