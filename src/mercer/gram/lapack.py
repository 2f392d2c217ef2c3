"""Dense factorisations that an interrupt does not wait for.

SciPy holds the interpreter's lock while LAPACK works, so Ctrl-C on a large fit would have an effect minutes later. Here
the same routines of the same library are called without the lock, in a thread of their own, while the caller waits and
checks for interrupts. After an interrupt the caller returns at once; the routine finishes in the background, on memory
that nothing else uses. It does not keep the program from ending, and the program does not free the memory it uses.

All matrices are symmetric or triangular, of float32 or float64, and overwritten. They are Fortran-ordered, which the
transpose of a symmetric C-ordered matrix is.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

from mercer import threads
from mercer.errors import InvalidInput
from mercer.gram import costs

T = TypeVar("T")
Matrix = NDArray[Any]

# Seconds between two checks for an interrupt.
CHECK = 0.05
# LAPACK counts its work space in 32 bits.
MOST = 2**31 - 1

_threads: WeakSet[threading.Thread] = WeakSet()


def cholesky(A: Matrix, *, lower: bool) -> int:
    """A = L Lᵀ (or UᵀU) in place of one triangle; the other is not touched.

    Returns 0, or the number of the pivot that is not positive.

    >>> A = np.array([[4.0, 7.0], [2.0, 5.0]], order="F")
    >>> cholesky(A, lower=True), A
    (0, array([[2., 7.],
           [1., 2.]]))
    """
    return _run(A, "potrf", b"L" if lower else b"U", len(A), A, _leading(A))


def inverse_from_cholesky(L: Matrix, *, lower: bool) -> int:
    """(L Lᵀ)⁻¹ in place of the triangle L. Returns 0, or the number of a zero on the diagonal."""
    return _run(L, "potri", b"L" if lower else b"U", len(L), L, _leading(L))


def inverse_of_triangle(L: Matrix, *, lower: bool) -> int:
    """L⁻¹ in place of the triangle L. Returns 0, or the number of a zero on the diagonal."""
    return _run(L, "trtri", b"L" if lower else b"U", b"N", len(L), L, _leading(L))


def eigh(A: Matrix) -> tuple[Matrix, Matrix]:
    """The eigenvalues of A, ascending, and its eigenvectors, which take A's place.

    >>> values, vectors = eigh(np.array([[2.0, 0.0], [0.0, 1.0]], order="F"))
    >>> values
    array([1., 2.])
    """
    n = len(A)
    values, size, whole = np.empty(n, A.dtype), np.empty(1, A.dtype), np.empty(1, np.intc)
    arguments = b"V", b"L", n, A, _leading(A), values
    _run(A, "syevd", *arguments, size, -1, whole, -1)
    need = 1 + 6 * n + 2 * n * n
    if need > MOST:
        raise InvalidInput(
            "An eigendecomposition must have at most 32 000 points",
            got=n,
            advice="Use solver='nystrom', or pass a number for alpha.",
        )
    work, integers = np.empty(max(int(size[0]), need), A.dtype), np.empty(int(whole[0]), np.intc)
    if _run(A, "syevd", *arguments, work, len(work), integers, len(integers)):
        raise np.linalg.LinAlgError("the eigenvalues of a matrix did not converge")
    return values, A


def _run(A: Matrix, name: str, *arguments: Any) -> int:
    """Call a routine for A's dtype, in a thread of its own if A is large. Returns its `info`."""
    if not (A.flags.f_contiguous and A.flags.writeable and A.dtype in (np.float32, np.float64)):
        raise ValueError(f"a writeable Fortran-ordered matrix of floats is needed, not {A.dtype}, {A.flags}")
    routine, info = _routine(("s" if A.dtype == np.float32 else "d") + name), ctypes.c_int(0)
    # The list keeps the arguments alive as long as the routine works.
    passed = [_argument(value) for value in (*arguments, info)]

    def work() -> int:
        routine(*passed)
        return info.value

    return away(work) if len(A) > costs.INTERRUPTIBLE_ROWS else work()


def _leading(A: Matrix) -> int:
    """The distance of two columns, which LAPACK requires to be ≥ 1 even if there are none."""
    return max(1, len(A))


def _argument(value: Any) -> Any:
    """A pointer: Fortran passes every argument by reference."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)  # which keeps the array alive
    if isinstance(value, bytes):
        value = ctypes.c_char(value)
    elif isinstance(value, int):
        value = ctypes.c_int(value)
    return ctypes.byref(value)


@lru_cache(maxsize=16)
def _routine(name: str) -> Any:
    """A routine of SciPy's LAPACK as a function of ctypes, which releases the interpreter."""
    capsule, python = cython_lapack.__pyx_capi__[name], ctypes.pythonapi
    python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    signature = python.PyCapsule_GetName(capsule)
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, signature)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (signature.count(b",") + 1))(address)


def away(work: Callable[[], T]) -> T:
    """The result of work that releases the interpreter, done in another thread while this one checks for interrupts."""
    done, results, errors = threading.Event(), list[T](), list[BaseException]()

    def job() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised in the calling thread
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=job, name="mercer-lapack", daemon=True)
    _threads.add(thread)
    thread.start()
    while not done.wait(CHECK):
        look()
    if errors:
        raise errors[0]
    return results[0]


def look() -> None:
    """Raise if the caller of this worker was interrupted. (The main thread is interrupted while it waits.)"""
    if threads.stopped():
        raise KeyboardInterrupt


@atexit.register
def _leave() -> None:
    """Let the program end while a routine still works.

    The library would free its memory and wait for its threads while the routine uses them, which ends in a crash or not
    at all. The process therefore exits as soon as Python has cleaned up, before the libraries do: `_exit` is registered
    last, and so called first. If the system cannot do that, the end of the program waits for the routine.
    """
    working = [thread for thread in _threads if thread.is_alive()]
    if not working:
        return
    try:
        system = ctypes.CDLL(None)
        system.on_exit(ctypes.cast(system._exit, ctypes.c_void_p), None)  # called with the exit code
    except (AttributeError, OSError, TypeError):  # not the GNU C library
        for thread in working:
            thread.join()
