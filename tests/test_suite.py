"""The tests themselves: the same names everywhere, no look at the clock, no reason to skip that lies with us."""

from __future__ import annotations

import ast
import os
import re
import tempfile
from pathlib import Path

import pytest

TESTS = sorted(Path(__file__).parent.glob("*.py"))
# What reads the time of day or lets time pass. An injected clock is defined, or set, and not called by these names.
CLOCK = {"time", "time_ns", "sleep", "perf_counter", "perf_counter_ns", "monotonic", "process_time", "thread_time"}


def test_names_hold_no_path_and_no_address(request):
    """Time and hash seeds are found by the workers, which collect a day apart: see conftest.py."""
    places = [str(request.config.rootpath), tempfile.gettempdir() + os.sep, str(Path.home()) + os.sep]
    for item in request.session.items:
        assert not any(place in item.name for place in places), item.nodeid
        assert not re.search(r"0x[0-9a-f]{6}", item.name), item.nodeid


def looks_at_the_clock(text):
    """The lines that call a function of `time`, or start a timer."""
    if not re.search(r"\btime\s*\.|\bfrom time\b|\bTimer\b", text):  # parsing takes longer than looking
        return []
    tree, found = ast.parse(text), []
    direct = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr=name)) if name in CLOCK:
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr="Timer") | ast.Name(id="Timer")):
                found.append(node.lineno)
            case ast.Call(func=ast.Name(id=name)) if name in direct:
                found.append(node.lineno)
    return found


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_no_test_looks_at_the_clock(path):
    assert looks_at_the_clock(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import time\nx = time.perf_counter()\nassert x", [2]),
        ("from time import sleep as nap\nnap(1)", [2]),
        ("import threading\nthreading.Timer(0.5, print)", [2]),
        ("class Clock:\n    def perf_counter(self):\n        return 1.0\n", []),
    ],
)
def test_a_look_at_the_clock_is_seen(text, lines):
    assert looks_at_the_clock(text) == lines


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_no_test_is_skipped_for_a_module_of_ours(path):
    text = path.read_text(encoding="utf-8")
    skips = [
        node.lineno
        for node in (ast.walk(ast.parse(text)) if re.search(r"\.(importorskip|skipif|skip)\b", text) else ())
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("importorskip", "skipif", "skip")
        and any("mercer" in str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant))
    ]
    assert skips == []
