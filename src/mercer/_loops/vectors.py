"""Explicit vectors for Numba: a few registers of numbers as one value.

LLVM vectorises plain loops with 256 bits at most, even where the processor has 512, and gives up on loops with a
polynomial exp after a matrix product. Here a loop says what it wants: `load` gives a value of type `Lanes` (a fixed
number of float32, float64 or int64), `+ - *` and `fma` work lane by lane, `store` writes it back. LLVM splits a wide
vector into as many registers as the processor needs, so the same code runs on every processor that Numba supports.

Memory is addressed by integers (the address of the first element, strides in bytes): no difference between writeable
and read-only arrays, or between contiguous arrays and row-strided views, ever reaches Numba, and each loop is
compiled once per dtype. `like` is a scalar whose type is the dtype wanted.

Numba's disk cache knows a function by the file it stands in, and would miss a change made here. So the files with loops
hold the digest of this file, `exponential.py` and `costs.py` (`VECTORS`); a test tells when it is to be renewed.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import operator
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import extending
from numba.core import cgutils, config, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from .addresses import LINE

intrinsic: Any = extending.intrinsic
loop: Any = numba.njit(cache=True, nogil=True)
"""A loop that Python calls."""
inline: Any = numba.njit(forceinline=True)
"""A part of one."""


def _wide() -> bool:
    """Whether Numba compiles for a processor with 512-bit registers. Its cache is kept per processor, too."""
    settings: Any = config
    if settings.CPU_FEATURES is not None:
        return "+avx512f" in settings.CPU_FEATURES
    return settings.CPU_NAME is None and bool(llvm.get_host_cpu_features().get("avx512f"))


WIDE = _wide()
BYTES = 256 if WIDE else 64
"""Size of one Lanes value: four rows of it are the accumulators of a register tile (16 of 32 or 8 of 16 registers)."""
SQUARE_BYTES = 64 if WIDE else 32
"""Side of the square that `transpose` keeps in registers."""

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


class Lanes(types.Type):
    """The Numba type of `count` numbers of `dtype` that are worked on at once."""

    def __init__(self, dtype: Any, count: int = 0) -> None:
        self.dtype, self.count = dtype, count or BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype} x {self.count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, ir.VectorType(_scalar(lanes.dtype), lanes.count))


def _scalar(dtype: types.Type) -> ir.Type:
    return {types.float32: ir.FloatType(), types.float64: ir.DoubleType(), types.int64: I64}[dtype]


def suffix(lanes: Lanes) -> str:
    """The name LLVM gives to a vector type inside an intrinsic's name: v64f32."""
    letter = "f" if isinstance(lanes.dtype, types.Float) else "i"
    return f"v{lanes.count}{letter}{lanes.dtype.bitwidth}"


def call(builder, name: str, result: ir.Type, *arguments):
    """Call the LLVM intrinsic `name`."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [a.type for a in arguments]), name
    )
    return builder.call(function, arguments)


def constant(lanes: Lanes, value) -> ir.Constant:
    vector = ir.VectorType(_scalar(lanes.dtype), lanes.count)
    return ir.Constant(vector, [ir.Constant(vector.element, value)] * lanes.count)


def _splat(builder, lanes: Lanes, scalar):
    vector = ir.VectorType(scalar.type, lanes.count)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes.count), [0] * lanes.count))


def _between(builder, lanes: Lanes, low, high):
    """The mask low <= lane < high."""
    narrow = ir.VectorType(I32, lanes.count)
    mask = ir.Constant(ir.VectorType(I1, lanes.count), [1] * lanes.count)
    for sign, bound in ((">=", low), ("<", high)):
        # clamped to 0 ... count, so that 32 bits hold it
        bound = builder.select(builder.icmp_signed("<", bound, I64(0)), I64(0), bound)
        bound = builder.select(builder.icmp_signed(">", bound, I64(lanes.count)), I64(lanes.count), bound)
        bound = _splat(builder, lanes, builder.trunc(bound, I32))
        mask = builder.and_(mask, builder.icmp_signed(sign, ir.Constant(narrow, list(range(lanes.count))), bound))
    return mask


def _pointer(builder, address, index, element: ir.Type, target: ir.Type):
    pointer = builder.gep(builder.inttoptr(address, element.as_pointer()), [index])
    return builder.bitcast(pointer, target.as_pointer())


@intrinsic
def count(typingctx, like):
    """How many numbers of `like`'s dtype one Lanes value holds."""

    def generate(context, builder, sig, args):
        return I64(Lanes(like).count)

    return types.int64(like), generate


@intrinsic
def get(typingctx, like, address, index):
    """The scalar at `address`, `index` elements on."""

    def generate(context, builder, sig, args):
        element = _scalar(like)
        return builder.load(_pointer(builder, args[1], args[2], element, element))

    return like(like, types.int64, types.int64), generate


@intrinsic
def put(typingctx, address, index, value):
    """Write the scalar `value` to `address`, `index` elements on."""

    def generate(context, builder, sig, args):
        element = _scalar(value)
        builder.store(args[2], _pointer(builder, args[0], args[1], element, element))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, value), generate


@intrinsic
def put_as(typingctx, like, address, index, value):
    """Write the float64 `value` to `address`, `index` elements on, as a number of `like`'s dtype."""

    def generate(context, builder, sig, args):
        element = _scalar(like)
        number = args[3] if element == args[3].type else builder.fptrunc(args[3], element)
        builder.store(number, _pointer(builder, args[1], args[2], element, element))
        return context.get_dummy_value()

    return types.void(like, types.int64, types.int64, types.float64), generate


@intrinsic
def splat(typingctx, value):
    """All lanes equal to the scalar `value`."""
    lanes = Lanes(value)

    def generate(context, builder, sig, args):
        return _splat(builder, lanes, args[0])

    return lanes(value), generate


@intrinsic
def fill(typingctx, like, value):
    """All lanes equal to the number `value`, in `like`'s dtype."""
    lanes = Lanes(like)

    def generate(context, builder, sig, args):
        return _splat(builder, lanes, context.cast(builder, args[1], value, like))

    return lanes(like, value), generate


@intrinsic
def load(typingctx, like, address, index):
    """The numbers `address`[index : index + count]."""
    lanes = Lanes(like)

    def generate(context, builder, sig, args):
        vector = ir.VectorType(_scalar(like), lanes.count)
        return builder.load(_pointer(builder, args[1], args[2], vector.element, vector), align=like.bitwidth // 8)

    return lanes(like, types.int64, types.int64), generate


@intrinsic
def store(typingctx, address, index, x):
    """`address`[index : index + count] = x."""

    def generate(context, builder, sig, args):
        vector = args[2].type
        pointer = _pointer(builder, args[0], args[1], vector.element, vector)
        builder.store(args[2], pointer, align=x.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, x), generate


@intrinsic
def load_some(typingctx, like, address, index, low, high):
    """As `load`, but only lanes low <= lane < high are read; the others are 0."""
    lanes = Lanes(like)

    def generate(context, builder, sig, args):
        _, address, index, low, high = args
        vector = ir.VectorType(_scalar(like), lanes.count)
        pointer = _pointer(builder, address, index, vector.element, vector)
        return call(
            builder, f"llvm.masked.load.{suffix(lanes)}.p0", vector,
            pointer, I32(like.bitwidth // 8), _between(builder, lanes, low, high), constant(lanes, 0),
        )  # fmt: skip

    return lanes(like, types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def store_some(typingctx, address, index, x, low, high):
    """As `store`, but only lanes low <= lane < high are written."""

    def generate(context, builder, sig, args):
        address, index, value, low, high = args
        pointer = _pointer(builder, address, index, value.type.element, value.type)
        call(
            builder, f"llvm.masked.store.{suffix(x)}.p0", ir.VoidType(),
            value, pointer, I32(x.dtype.bitwidth // 8), _between(builder, x, low, high),
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, x, types.int64, types.int64), generate


@intrinsic
def fma(typingctx, x, y, z):
    """x y + z, rounded once where the processor can."""

    def generate(context, builder, sig, args):
        return call(builder, f"llvm.fmuladd.{suffix(x)}", args[0].type, *args)

    return x(x, x, x), generate


@intrinsic
def sqrt(typingctx, x):
    """The square root of every lane."""

    def generate(context, builder, sig, args):
        return call(builder, f"llvm.sqrt.{suffix(x)}", args[0].type, *args)

    return x(x), generate


@intrinsic
def absolute(typingctx, x):
    """The absolute value of every lane."""

    def generate(context, builder, sig, args):
        return call(builder, f"llvm.fabs.{suffix(x)}", args[0].type, *args)

    return x(x), generate


@intrinsic
def where_less(typingctx, x, y, then, other):
    """`then` in the lanes with x < y, `other` elsewhere (so where x or y is NaN)."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return then(x, x, then, then), generate


@intrinsic
def equal(typingctx, x, y):
    """1 in the lanes with x = y, 0 elsewhere, for integers."""

    def generate(context, builder, sig, args):
        return builder.zext(builder.icmp_signed("==", *args), args[0].type)

    return x(x, x), generate


@intrinsic
def store_as(typingctx, like, address, index, x, low, high):
    """As `store_some`, integers becoming numbers of `like`'s dtype."""

    def generate(context, builder, sig, args):
        _, address, index, value, low, high = args
        lanes = Lanes(like, x.count)
        vector = ir.VectorType(_scalar(like), x.count)
        pointer = _pointer(builder, address, index, vector.element, vector)
        call(
            builder, f"llvm.masked.store.{suffix(lanes)}.p0", ir.VoidType(),
            builder.sitofp(value, vector), pointer, I32(like.bitwidth // 8), _between(builder, lanes, low, high),
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(like, types.int64, types.int64, x, types.int64, types.int64), generate


@intrinsic
def least(typingctx, x):
    """The smallest lane, as a scalar."""

    def generate(context, builder, sig, args):
        return call(builder, f"llvm.vector.reduce.fmin.{suffix(x)}", args[0].type.element, args[0])

    return x.dtype(x), generate


@intrinsic
def total(typingctx, x):
    """The sum of the lanes in float64. Quarters are added first: four terms lose nothing that matters."""

    def generate(context, builder, sig, args):
        value, n = args[0], x.count
        for _ in range(2):
            n //= 2
            half = [ir.Constant(ir.VectorType(I32, n), list(range(k * n, k * n + n))) for k in (0, 1)]
            value = builder.fadd(*(builder.shuffle_vector(value, value, h) for h in half))
        if x.dtype == types.float32:
            value = builder.fpext(value, ir.VectorType(ir.DoubleType(), n))
        while n > 1:
            n //= 2
            half = [ir.Constant(ir.VectorType(I32, n), list(range(k * n, k * n + n))) for k in (0, 1)]
            value = builder.fadd(*(builder.shuffle_vector(value, value, h) for h in half))
        return builder.extract_element(value, I32(0))

    return types.float64(x), generate


@intrinsic
def side(typingctx, like):
    """Side of the square that `transpose` moves, in numbers of `like`'s dtype."""

    def generate(context, builder, sig, args):
        return I64(SQUARE_BYTES * 8 // like.bitwidth)

    return types.int64(like), generate


@intrinsic
def transpose(typingctx, like, source, stride, target, target_stride):
    """Write the transpose of the square of `side` rows at `source` to `target`; strides in bytes.

    Eklundh's scheme: for s = side/2, ..., 2, 1 rows i and i + s exchange the blocks of s columns off the diagonal.
    """

    def generate(context, builder, sig, args):
        _, source, stride, target, target_stride = args
        n = SQUARE_BYTES * 8 // like.bitwidth
        vector, align = ir.VectorType(_scalar(like), n), like.bitwidth // 8

        def row(start, step, i):
            return builder.inttoptr(builder.add(start, builder.mul(step, I64(i))), vector.as_pointer())

        rows = [builder.load(row(source, stride, i), align=align) for i in range(n)]
        s = n // 2
        while s:
            for i in (i for i in range(n) if not i & s):
                upper = [c if not c & s else n + c - s for c in range(n)]
                lower = [c + s if not c & s else n + c for c in range(n)]
                rows[i], rows[i + s] = (
                    builder.shuffle_vector(rows[i], rows[i + s], ir.Constant(ir.VectorType(I32, n), places))
                    for places in (upper, lower)
                )
            s //= 2
        for i, value in enumerate(rows):
            builder.store(value, row(target, target_stride, i), align=align)
        return context.get_dummy_value()

    return types.void(like, *[types.int64] * 4), generate


@intrinsic
def stream_line(typingctx, like, source, target):
    """Copy a cache line to the aligned address `target`, past the caches: what is there need not be read first.

    Other threads may see it late: `fence` before telling them.
    """

    def generate(context, builder, sig, args):
        vector = ir.VectorType(_scalar(like), LINE * 8 // like.bitwidth)
        start, end = (builder.inttoptr(address, vector.as_pointer()) for address in args[1:])
        store = builder.store(builder.load(start, align=like.bitwidth // 8), end, align=LINE)
        store.set_metadata("nontemporal", builder.module.add_metadata([I32(1)]))
        return context.get_dummy_value()

    return types.void(like, types.int64, types.int64), generate


@intrinsic
def fence(typingctx):
    """Everything stored before is visible to whoever hears of it after."""

    def generate(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


def _arithmetic(operation, instruction: str) -> None:
    """Give Lanes an operator: lanes with lanes, or lanes with a scalar of the same dtype."""

    @infer_global(operation)
    class Template(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Lanes) and args[1] in (args[0], args[0].dtype):
                return signature(args[0], *args)

    @lower_builtin(operation, Lanes, types.Any)
    def generate(context, builder, sig, args):
        x, y = args
        name = instruction if isinstance(sig.args[0].dtype, types.Float) else instruction.lstrip("f")
        return getattr(builder, name)(x, y if sig.args[1] == sig.args[0] else _splat(builder, sig.args[0], y))


_arithmetic(operator.add, "fadd")
_arithmetic(operator.iadd, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")
